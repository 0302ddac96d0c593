// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionRegistry: sessions of worker processes (DataLoader's), which belong to
// their program's session. They count against no limit of sessions, for the
// program did not ask for them, and end with it, so that nobody gets round the
// limit by them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/session/session.h"
#include "server/session/session_registry.h"

namespace holdfast {
namespace {

// Of one session, at a time; further ones count as sessions of their own.
constexpr size_t kMaxChildren = 256;

bool Over(const std::weak_ptr<Session>& child) {
  const std::shared_ptr<Session> session = child.lock();
  return session == nullptr || session->ended();
}

}  // namespace

absl::StatusOr<uint64_t> SessionRegistry::FindParent(
    const v1::HelloRequest& request, const User& user) {
  const std::shared_ptr<Session> parent = Find(request.parent_token(), user);
  if (parent == nullptr) {
    return absl::NotFoundError(
        "[hello] a worker belongs to the session of the program that started "
        "it, and that has ended");
  }
  if (!request.session_name().empty()) {
    return absl::InvalidArgumentError(
        "[hello] a worker's session has no name of its own");
  }
  const Session::Options& options = parent->options();
  const uint64_t id = options.parent_id == 0 ? options.id : options.parent_id;
  std::vector<std::weak_ptr<Session>>& children = children_[id];
  children.erase(std::remove_if(children.begin(), children.end(), Over),
                 children.end());
  return children.size() < kMaxChildren ? id : 0;
}

void SessionRegistry::NoteChild(const std::shared_ptr<Session>& session) {
  const uint64_t parent = session->options().parent_id;
  if (parent != 0) children_[parent].push_back(session);
}

void SessionRegistry::EndChildren(const Session& parent) {
  std::vector<std::weak_ptr<Session>> children;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = children_.find(parent.options().id);
    if (it == children_.end()) return;
    children = std::move(it->second);
    children_.erase(it);
  }
  for (const std::weak_ptr<Session>& weak : children) {
    const std::shared_ptr<Session> child = weak.lock();
    if (child == nullptr) continue;
    End(child, absl::AbortedError(
                   "[session] the session of the program that started this "
                   "worker has ended"));
  }
}

}  // namespace holdfast
