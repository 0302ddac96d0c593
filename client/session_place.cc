// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/session_place.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace holdfast::client {
namespace {

using Lock = std::lock_guard<std::mutex>;

std::string Clock(absl::Time time) {
  return absl::FormatTime("%H:%M:%S", time, absl::LocalTimeZone());
}

}  // namespace

std::string SecondsText(double seconds) {
  if (std::isinf(seconds)) return "as long as it takes";
  return absl::StrFormat("%.10g s", std::round(seconds * 10) / 10);
}

void SessionPlace::Set(std::string address, uint64_t number, std::string name,
                       double grace_seconds) {
  Lock lock(mutex_);
  address_ = std::move(address);
  number_ = number;
  name_ = std::move(name);
  grace_seconds_ = grace_seconds;
}

std::string SessionPlace::name() const {
  Lock lock(mutex_);
  return name_;
}

double SessionPlace::grace_seconds() const {
  Lock lock(mutex_);
  return grace_seconds_;
}

std::string SessionPlace::Describe() const {
  Lock lock(mutex_);
  return name_.empty() ? absl::StrCat("session ", number_,
                                      ", which has no name, at ", address_)
                       : absl::StrCat("session '", name_, "' (number ", number_,
                                      ") at ", address_);
}

std::string SessionPlace::HowToAttach() const {
  Lock lock(mutex_);
  return name_.empty()
             ? "Only a session with a name can be gone on with by another "
               "program: connect(session=NAME)"
             : absl::StrCat("connect('", address_, "', session='", name_,
                            "') goes on with what it keeps");
}

absl::Status SessionPlace::Lost(const std::string& reason) const {
  return absl::UnavailableError(
      absl::StrCat("[session] the daemon has lost ", Describe(), " (", reason,
                   "). Tensors that only it held are lost. Connect anew."));
}

absl::Status SessionPlace::Unreachable(absl::Time since,
                                       const std::string& reason) const {
  const absl::Time now = absl::Now();
  const absl::Duration left = since + absl::Seconds(grace_seconds()) - now;
  std::string stays;
  if (left == absl::InfiniteDuration()) {
    stays = "The daemon keeps it until it is ended";
  } else if (left > absl::ZeroDuration()) {
    stays = absl::StrCat("The daemon keeps it for another ",
                         SecondsText(absl::ToDoubleSeconds(left)), ", until ",
                         Clock(now + left));
  } else {
    stays = absl::StrCat("Its grace period of ", SecondsText(grace_seconds()),
                         " is over, so it may have ended by now");
  }
  return absl::UnavailableError(absl::StrCat(
      "[session] no connection since ", Clock(since), " (",
      SecondsText(absl::ToDoubleSeconds(now - since)), ") to ", Describe(),
      " (", reason, "). ", stays, ". ", HowToAttach(), "."));
}

absl::Status SessionPlace::HungUp(const std::string& reason) const {
  return absl::UnavailableError(absl::StrCat(
      "[session] the connection to ", Describe(), " is cut (", reason,
      "). The daemon keeps the session for ", SecondsText(grace_seconds()),
      " from now. ", HowToAttach(), "."));
}

std::string SessionPlace::Waiting(absl::Time since,
                                  absl::Duration longest) const {
  return absl::StrCat("holdfast: no connection since ", Clock(since), " to ",
                      Describe(), "; trying again for ",
                      SecondsText(absl::ToDoubleSeconds(longest)), "\n");
}

}  // namespace holdfast::client
