// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/waits/no_wait.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "server/log/stack_text.h"
#include "server/waits/ranked_mutex.h"

namespace holdfast {
namespace {

bool Asked() {
  const char* const text = std::getenv("HOLDFAST_CHECK_WAITS");
  return text != nullptr && std::strcmp(text, "1") == 0;
}

}  // namespace

namespace waits {

const bool checked = Asked();

void Abort(const std::string& text) {
  const std::string line = absl::StrCat(
      "holdfastd: ", text,
      "; stack: ", StackText(CallStack::Here(/*skip=*/1).span()), "\n");
  [[maybe_unused]] const ssize_t n =
      write(STDERR_FILENO, line.data(), line.size());
  std::abort();
}

void CheckWait(const char* what) {
  if (NoWait::active()) {
    Abort(absl::StrCat("a thread that must not wait came to what may: ", what));
  }
  const std::string held = HeldInNoWaits();
  if (held.empty()) return;
  Abort(absl::StrCat("a thread came to what may wait (", what,
                     ") with the lock '", held,
                     "', which one that must not wait may want"));
}

}  // namespace waits

NoWait::NoWait(Aside* aside) : outer_(aside_) { aside_ = aside; }

NoWait::~NoWait() { aside_ = outer_; }

}  // namespace holdfast
