// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a transport's thread tells the registry that a peer is gone, although
// the worker may be destroying the Connection at that moment, and its address
// may soon be somebody else's. Both sides share a ConnectionLife, and the
// question "is it still there?" is asked on the worker thread only.
// Thread-safety: ReportHangUp from any thread.
#ifndef HOLDFAST_SERVER_TRANSPORT_HANG_UP_H_
#define HOLDFAST_SERVER_TRANSPORT_HANG_UP_H_

#include <atomic>
#include <memory>

#include "server/session/connection.h"
#include "server/session/session.h"
#include "server/session/session_registry.h"

namespace holdfast {

struct ConnectionLife {
  ConnectionLife(SessionRegistry* registry,
                 const std::shared_ptr<Session>& session)
      : registry(registry), session(session) {}

  SessionRegistry* const registry;
  const std::weak_ptr<Session> session;  // the session owns the connection
  // Set once by the connection, cleared by its destructor.
  std::atomic<Connection*> connection{nullptr};
};

// Leads to registry->Disconnected unless the connection is already gone.
void ReportHangUp(std::shared_ptr<ConnectionLife> life);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_HANG_UP_H_
