// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/hang_up.h"

#include <utility>

#include "server/exec/worker.h"

namespace holdfast {

void ReportHangUp(std::shared_ptr<ConnectionLife> life) {
  Worker* worker = life->registry->worker();
  worker->Post([life = std::move(life)] {
    Connection* connection = life->connection.load(std::memory_order_acquire);
    std::shared_ptr<Session> session = life->session.lock();
    if (connection == nullptr || session == nullptr) return;
    life->registry->Disconnected(session, connection);
  });
}

}  // namespace holdfast
