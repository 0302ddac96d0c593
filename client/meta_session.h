// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A session without a daemon: PyTorch's device "meta". Ops are inferred as in
// any session, so that results have their sizes, types and strides, and then
// dropped. What would read elements, or needs them for its sizes, fails with
// Unimplemented.
// Thread-safety: as every session's.
#ifndef HOLDFAST_CLIENT_META_SESSION_H_
#define HOLDFAST_CLIENT_META_SESSION_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/session.h"

namespace holdfast::client {

// Session::transport(), device() and address() of such a session.
inline constexpr char kMeta[] = "meta";

absl::StatusOr<std::shared_ptr<Session>> OpenMetaSession();

inline bool IsMeta(const Session& session) {
  return session.transport() == kMeta;
}

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_META_SESSION_H_
