// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionRegistry: what users may take, and how that changes while they are
// there.
#include <unistd.h>

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/device.h"
#include "proto/steady_time.h"
#include "server/exec/fair_share.h"
#include "server/exec/published_tensors.h"
#include "server/exec/shared_storages.h"
#include "server/limits/room_for_others.h"
#include "server/session/session.h"
#include "server/session/session_registry.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

// All that sessions could take together; 0: not known.
uint64_t DeviceBytes(const Device& device) {
  if (!device.host_memory()) return 0;
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// What the flags say.
v1::Limits BaseLimits(const ServerLimits& limits) {
  v1::Limits base;
  base.set_memory_bytes(0);
  base.set_memory_share_bytes(0);
  base.set_session_memory_bytes(limits.memory_limit_bytes);
  base.set_weight(1);
  base.set_max_sessions(0);
  base.set_idle_seconds(0);
  base.set_max_handles(2000000);
  base.set_max_graph_nodes(8000000);
  base.set_max_names(4096);
  base.set_max_connections(2048);
  base.set_op_seconds(600);
  return base;
}

}  // namespace

SessionRegistry::SessionRegistry(Device* device, Worker* worker,
                                 ServerLimits limits,
                                 std::shared_ptr<Authenticator> trust)
    : device_(device),
      worker_(worker),
      shared_(std::make_shared<SharedStorages>()),
      names_(std::make_shared<PublishedTensors>(
          device, shared_,
          [this](const std::string& user) { return Account(user); },
          [this](const std::string& user) {
            return user_limits_.Of(user).max_names();
          })),
      limits_(limits),
      trust_(trust != nullptr ? std::move(trust)
                              : std::make_shared<Authenticator>()),
      ledger_(std::make_shared<MemoryLedger>(DeviceBytes(*device))),
      user_limits_(BaseLimits(limits)),
      started_(SteadyNow()),
      last_tick_us_(started_.ToMicros()) {}

std::shared_ptr<MemoryAccount> SessionRegistry::Account(
    const std::string& user) {
  std::shared_ptr<MemoryAccount> account = ledger_->Account(user);
  const v1::Limits limits = user_limits_.Of(user);
  account->SetLimits(limits.memory_bytes(), limits.memory_share_bytes());
  return account;
}

std::shared_ptr<UserShare> SessionRegistry::Share(const std::string& user) {
  std::weak_ptr<UserShare>& entry = shares_[user];
  std::shared_ptr<UserShare> share = entry.lock();
  if (share == nullptr) {
    share = std::make_shared<UserShare>();
    entry = share;
  }
  share->account.set_weight(user_limits_.Of(user).weight());
  return share;
}

absl::Status SessionRegistry::CheckRoom(const std::string& user, bool worker) {
  const uint64_t most = user_limits_.Of(user).max_sessions();
  uint64_t open = 0, workers = 0;
  for (const auto& [token, session] : by_token_) {
    if (session->ended() || session->options().user != user) continue;
    ++(session->options().parent_id == 0 ? open : workers);
  }
  const uint64_t own = open + workers;
  if (!RoomForOthers(own, by_token_.size(), limits_.max_sessions)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "[hello] nearly all of the daemon's ", limits_.max_sessions,
        " sessions are taken, and the rest is for other users: ", user, " has ",
        own, ". Close one"));
  }
  if (worker || most == 0 || open < most) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "[hello] ", user, " may have ", most, " sessions at a time and has ",
      open,
      ". End one (holdfast status lists them, holdfast end NAME ends one), or "
      "ask an admin for more (holdfast limits)"));
}

absl::Status SessionRegistry::CheckBuffers(const v1::HelloRequest& request,
                                           const User& user) {
  // Rings, or a message of gRPC's.
  constexpr uint64_t kBuffers = uint64_t{5} << 20;
  constexpr int kFew = 16;
  if (!request.session_token().empty() || request.attach()) {
    return absl::OkStatus();
  }
  int own = 0;
  // Of gRPC's nobody sees how much has come: the ledger counts none of it.
  uint64_t uncounted = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!request.session_name().empty() &&
        FindByName(request.session_name(), user.name) != nullptr) {
      return absl::OkStatus();
    }
    for (const auto& [token, session] : by_token_) {
      if (session->options().user != user.name) continue;
      ++own;
      if (!session->local()) uncounted += kBuffers;
    }
  }
  if (own < kFew) return absl::OkStatus();
  absl::Status room =
      MemoryCharge(Account(user.name)).CheckRoom(uncounted + kBuffers);
  if (room.ok()) return room;
  return absl::Status(
      room.code(),
      absl::StrCat("[hello] a session's buffers are 5 MiB, and ",
                   room.message(), ". ", user.name, " has ", own,
                   " sessions: end one (holdfast end NAME), or free memory"));
}

void SessionRegistry::ApplyLimits() {
  for (const std::shared_ptr<MemoryAccount>& account : ledger_->Accounts()) {
    const v1::Limits limits = user_limits_.Of(account->user());
    account->SetLimits(limits.memory_bytes(), limits.memory_share_bytes());
  }
  for (const std::shared_ptr<Session>& session : Sessions()) {
    const v1::Limits limits = user_limits_.Of(session->options().user);
    session->user_share()->account.set_weight(limits.weight());
    session->set_memory_limit(limits.session_memory_bytes());
    session->set_count_limits(limits.max_handles(), limits.max_graph_nodes());
    session->set_op_seconds(limits.op_seconds());
  }
}

absl::Status SessionRegistry::Configure(const std::string& path) {
  absl::StatusOr<Configuration> read = ReadConfiguration(path);
  if (!read.ok()) return read.status();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    config_file_ = path;
  }
  // What an earlier configuration said is no more.
  ledger_->set_capacity(read->device_bytes != 0 ? read->device_bytes
                                                : DeviceBytes(*device_));
  user_limits_.Configure(*std::move(read));
  trust_->set_admins(
      [this](const std::string& user) { return user_limits_.IsAdmin(user); });
  ApplyLimits();
  return absl::OkStatus();
}

absl::Status SessionRegistry::Reload() {
  std::string path;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    path = config_file_;
  }
  absl::Status status;
  if (!path.empty()) status = Configure(path);
  if (!status.ok()) {
    spdlog::error("{} The former configuration stays.",
                  std::string(status.message()));
  } else if (!path.empty()) {
    spdlog::info("configuration {} read again", path);
  }
  const absl::Status tokens = trust_->Reload(/*force=*/true);
  if (!tokens.ok()) {
    spdlog::error("{} The former tokens stay.", std::string(tokens.message()));
  }
  status.Update(tokens);
  return status;
}

absl::Status SessionRegistry::SetLimits(
    const v1::AdminRequest::SetLimits& request) {
  absl::Status status =
      user_limits_.Set(request.user(), request.limits(), request.reset());
  if (status.ok()) ApplyLimits();
  return status;
}

void SessionRegistry::ListUsers(v1::AdminReply* reply) {
  std::map<std::string, v1::AdminUser> users;
  for (const std::string& name : user_limits_.Named()) users[name];
  for (const auto& session : Sessions()) {
    if (session->ended()) continue;
    v1::AdminUser& user = users[session->options().user];
    user.set_sessions(user.sessions() + 1);
  }
  for (const auto& account : ledger_->Accounts()) {
    users[account->user()].set_bytes_reserved(account->reserved());
  }
  std::map<std::string, Role> roles;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    roles = roles_;
  }
  for (auto& [name, user] : users) {
    user.set_name(name);
    const auto seen = roles.find(name);
    user.set_role(RoleName(user_limits_.IsAdmin(name) ? Role::kAdmin
                           : seen == roles.end()      ? Role::kUser
                                                      : seen->second));
    *user.mutable_limits() = user_limits_.Of(name);
    *reply->add_users() = std::move(user);
  }
  *reply->mutable_default_limits() = user_limits_.Of("");
  reply->set_device_bytes(ledger_->capacity());
  reply->set_device_bytes_reserved(ledger_->reserved());
}

void SessionRegistry::ListUser(const User& who, v1::AdminReply* reply) {
  v1::AdminUser* user = reply->add_users();
  user->set_name(who.name);
  user->set_role(RoleName(who.role));
  for (const auto& session : Sessions()) {
    if (session->ended() || session->options().user != who.name) continue;
    user->set_sessions(user->sessions() + 1);
  }
  for (const auto& account : ledger_->Accounts()) {
    if (account->user() != who.name) continue;
    user->set_bytes_reserved(account->reserved());
  }
  *user->mutable_limits() = user_limits_.Of(who.name);
}

}  // namespace holdfast
