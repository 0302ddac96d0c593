// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/hang_up.h"

#include <utility>

#include "proto/steady_time.h"
#include "server/exec/worker.h"
#include "server/session/session.h"

namespace holdfast {

void ReportHangUp(std::shared_ptr<ConnectionLife> life) {
  Worker* worker = life->registry->worker();
  const std::shared_ptr<Session> session = life->session.lock();
  if (session == nullptr) return;
  // At once: the worker may be at an op of this very client.
  session->NoteHangUp(life->connection.load(std::memory_order_acquire),
                      SteadyNow());
  worker->PostAbout(session.get(), [life = std::move(life), session] {
    Connection* connection = life->connection.load(std::memory_order_acquire);
    if (connection == nullptr) return;
    life->registry->Disconnected(session, connection);
  });
}

}  // namespace holdfast
