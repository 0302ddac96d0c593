// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/waits/no_wait.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "server/waits/ranked_mutex.h"

namespace holdfast {

namespace waits {

void CheckWait(const char* what) {
  if (NoWait::active()) {
    Report(
        absl::StrCat("a thread that must not wait came to what may: ", what));
    return;
  }
  const std::string held = HeldInNoWaits();
  if (held.empty()) return;
  Report(absl::StrCat("a thread came to what may wait (", what,
                      ") with the lock '", held,
                      "', which one that must not wait may want"));
}

}  // namespace waits

NoWait::NoWait(Aside* aside) : outer_(aside_) { aside_ = aside; }

NoWait::~NoWait() { aside_ = outer_; }

}  // namespace holdfast
