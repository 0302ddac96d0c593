// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionRegistry: what a client is told that comes back with a token that is
// good no more.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "server/session/session_registry.h"

namespace holdfast {
namespace {

// Some days of clients that come back late. Above it the user with most of them
// loses the oldest.
constexpr size_t kFormerTokens = 4096;

std::string ClockNow() {
  return absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone());
}

std::string Described(const Session& session) {
  return session.name().empty()
             ? absl::StrCat("session ", session.options().id)
             : absl::StrCat("session '", session.name(), "' (number ",
                            session.options().id, ")");
}

// "[session] text" -> "text"
absl::string_view Plain(absl::string_view message) {
  const size_t end = message.find("] ");
  return absl::StartsWith(message, "[") && end != message.npos
             ? message.substr(end + 2)
             : message;
}

}  // namespace

void SessionRegistry::NoteFormer(const std::string& token,
                                 const Session& session, absl::Status told) {
  if (!former_.try_emplace(token, Former{session.options().user, told}).second)
    return;
  former_order_[session.options().user].push_back(token);
  if (former_.size() <= kFormerTokens) return;
  const auto most = std::max_element(
      former_order_.begin(), former_order_.end(),
      [](auto& a, auto& b) { return a.second.size() < b.second.size(); });
  former_.erase(most->second.front());
  most->second.pop_front();
  if (most->second.empty()) former_order_.erase(most);
}

void SessionRegistry::NoteEnd(const Session& session,
                              const absl::Status& reason) {
  NoteFormer(
      session.token(), session,
      absl::NotFoundError(absl::StrCat(
          "[hello] the session ended at ", ClockNow(), ": ",
          reason.ok() ? "its program closed it" : Plain(reason.message()))));
}

void SessionRegistry::NoteTakenOver(const std::string& token,
                                    const Session& session) {
  NoteFormer(token, session,
             absl::FailedPreconditionError(absl::StrCat(
                 "[hello] another client took over ", Described(session),
                 " at ", ClockNow(),
                 " and goes on with what it keeps. The daemon has it still: "
                 "connect(session='",
                 session.name(), "', attach=True) takes it back")));
}

absl::Status SessionRegistry::WhyUnknown(const std::string& token,
                                         const User& user) const {
  const auto it = former_.find(token);
  // Another user's is as good as none: a guess learns nothing.
  if (it != former_.end() && it->second.user == user.name) {
    return it->second.told;
  }
  return absl::NotFoundError(
      "[hello] the daemon knows no such session: it was restarted since, or "
      "the session ended long ago");
}

absl::Status SessionRegistry::WhyRefused(const Session& session,
                                         const User& user) const {
  if (session.ended()) return WhyUnknown(session.token(), user);
  return absl::FailedPreconditionError(absl::StrCat(
      "[hello] the daemon sent this client away from ", Described(session),
      ", for it broke the protocol or has left. The session is there still: "
      "connect(session='",
      session.name(), "') goes on with what it keeps"));
}

}  // namespace holdfast
