// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Connection: what a session sees of a transport: batches come in, events go
// out. The worker thread (exec/worker.h) calls it; transports implement it and
// know nothing of tensors.
#ifndef HOLDFAST_SERVER_SESSION_CONNECTION_H_
#define HOLDFAST_SERVER_SESSION_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/holdfast.pb.h"

namespace holdfast {

class Connection {
 public:
  // On destruction (worker thread, or the registry's at shutdown) no callback
  // into the session may be pending any more.
  virtual ~Connection() = default;

  virtual absl::string_view transport() const = 0;  // "shm", "grpc"

  // Looks at the system whether the client is gone, which the transport's own
  // threads hear only when they have time. Any thread, also after the
  // connection's end; makes a system call. Null: cannot be seen.
  virtual std::function<bool()> hang_up_look() const { return nullptr; }

  // ---- worker thread only; none of these blocks.

  // The next batch, valid until the following call; null when none waits. An
  // error: the client broke the protocol, the session ends.
  virtual absl::StatusOr<const v1::Batch*> NextBatch() = 0;
  // When that batch came (ProfileNow); 0: not known, as where it lies in
  // memory from the moment the client sends it.
  virtual int64_t batch_received() const { return 0; }
  // Its size as it came, in bytes; 0: not known.
  virtual size_t batch_bytes() const { return 0; }
  // A cheap look: might NextBatch return something?
  virtual bool HasBatch() = 0;
  // Bytes of the batches that have come and wait; 0: not known.
  virtual size_t queued_bytes() const { return 0; }
  // Before the worker sleeps: from now on an arriving batch must call
  // Worker::Wake (or ring the doorbell the worker's epoll set watches). Returns
  // false if a batch is there already.
  virtual bool Arm() = 0;
  virtual void Disarm() = 0;
  // The eventfd that an armed client rings, watched by the worker; -1 where the
  // transport calls Worker::Wake.
  virtual int doorbell() const { return -1; }

  // Queues one event. False: the transport cannot take it now (ring full); the
  // session keeps it and offers it again later.
  virtual bool Send(const v1::Event& event) = 0;
  // A cheap look: might Send take what it refused last? When that changes, the
  // doorbell rings or Worker::Wake is called, whether armed or not.
  virtual bool CanSend() = 0;
  // Ends the transport after what was sent has had a chance to go out.
  virtual void Close(const absl::Status& reason) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_SESSION_CONNECTION_H_
