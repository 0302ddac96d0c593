// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionRegistry: sessions that go to the disk and come from there.
#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/device.h"
#include "proto/steady_time.h"
#include "server/exec/worker.h"
#include "server/session/session.h"
#include "server/session/session_registry.h"
#include "spdlog/spdlog.h"

namespace holdfast {

absl::Status SessionRegistry::CheckLoaded(const std::string& user,
                                          const std::string& name) const {
  if (loading_.count({user, name}) == 0) return absl::OkStatus();
  archive_.load()->HurrySession(user, name);
  return absl::UnavailableError(absl::StrCat(
      "[hello] session '", name,
      "' is being loaded: ", archive_.load()->bytes_loaded() >> 20, " of ",
      archive_.load()->bytes_found() >> 20,
      " MiB of the daemon's state are there. Try again in a moment"));
}

void SessionRegistry::AddLoading(const std::string& user,
                                 const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  loading_.insert({user, name});
}

void SessionRegistry::DropLoading(const std::string& user,
                                  const std::string& name) {
  std::lock_guard<std::mutex> lock(mutex_);
  loading_.erase({user, name});
}

absl::StatusOr<std::shared_ptr<Session>> SessionRegistry::NewDetached(
    const std::string& user, const std::string& name,
    const std::string& client) {
  std::lock_guard<std::mutex> lock(mutex_);
  Session::Options options;
  options.name = name;
  options.user = user;
  options.client = client;
  options.mappable = true;
  return NewSession(std::move(options));
}

void SessionRegistry::FinishLoading(const std::shared_ptr<Session>& session) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    loading_.erase({session->options().user, session->name()});
    by_token_[session->token()] = session;
  }
  worker_->Add(session);
  spdlog::info("session {} loaded: '{}' waits to be attached to",
               session->options().id, session->name());
}

std::vector<KeptTensors> SessionRegistry::TakeKept(absl::Duration drain) {
  std::vector<std::shared_ptr<Session>> named;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [token, session] : by_token_) {
      if (!session->ended() && !session->name().empty()) {
        named.push_back(session);
      }
    }
  }
  std::vector<KeptTensors> all;
  const SteadyTime deadline = SteadyNow() + drain;
  for (const auto& session : named) {
    worker_->Run([&] {
      const absl::Duration left =
          std::max(absl::ZeroDuration(), deadline - SteadyNow());
      worker_->RunTurn(session.get(), {1 << 30, left});
      if (session->HasWork()) {
        spdlog::warn(
            "session {} ('{}') is saved before all that it sent is done",
            session->options().id, session->name());
      }
      if (session->ended()) return;
      // Nobody writes any more what is written to the disk.
      session->HangUp(absl::UnavailableError(absl::StrCat(
          "[session] the daemon is shutting down. What session '",
          session->name(),
          "' keeps is saved: connect(session=...) finds it when the daemon is "
          "back")));
      all.push_back(session->TakeKept());
    });
  }
  return all;
}

}  // namespace holdfast
