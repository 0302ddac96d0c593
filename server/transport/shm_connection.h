// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ShmConnection: a session's connection over two rings in shared memory.
// Batches are decoded where they are executed, on the worker thread, from a
// copy of the record, since the client can change the ring at any time.
// Doorbells are rung only for a peer that sleeps.
// Thread-safety: as Connection: worker thread only, made and handed over by
// the local server's thread. Owns the rings' mapping and its descriptors.
#ifndef HOLDFAST_SERVER_TRANSPORT_SHM_CONNECTION_H_
#define HOLDFAST_SERVER_TRANSPORT_SHM_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/holdfast.pb.h"
#include "proto/shm_ring.h"
#include "server/session/connection.h"
#include "server/transport/batch_decoder.h"
#include "server/transport/hang_up.h"
#include "server/transport/unique_fd.h"

namespace holdfast {

class Worker;

// Sizes of a session's rings. Values larger than kShmInlineLimit travel
// through the session's segments instead.
inline constexpr uint32_t kSubmissionRingBytes = 4 << 20;
inline constexpr uint32_t kCompletionRingBytes = 1 << 20;
// Leaves room for what surrounds the bytes of a Put or a ReadResult.
inline constexpr uint64_t kShmInlineLimit =
    MaxRecord(kCompletionRingBytes) - 4096;

// What both ends share: the mapped rings and the descriptors to pass.
//
// Whether a descriptor blocks is the open file's, which a passed descriptor
// shares: the client can change it at any time. So nothing here reads or writes
// one that the client has, but by calls that are told not to wait:
// - the server's bell is only ever watched (edge by edge, Worker::Watch);
// - the client's bell is one end of a pair of datagram sockets, whose other end
//   nobody else has, sends with MSG_DONTWAIT and receives nothing: what a
//   client sends there, descriptors of its own among it, would be ours to
//   close.
struct ShmChannel {
  RingMemory submission;
  RingMemory completion;
  UniqueFd submission_fd;   // only to pass on
  UniqueFd completion_fd;   // only to pass on
  UniqueFd server_bell;     // eventfd: the client rings it
  UniqueFd client_bell;     // socket: we ring it
  UniqueFd client_bell_fd;  // its other end, only to pass on

  static absl::StatusOr<ShmChannel> Create();
};

class ShmConnection final : public Connection {
 public:
  // `control` is the client's socket, shared with the local server's thread;
  // Close shuts its reading side down, which that thread sees as a hang-up.
  // `worker` (may be null in tests) watches the server's doorbell. Sets
  // life->connection. `takes_parts`: the client reads Event.part.
  ShmConnection(ShmChannel channel, Worker* worker,
                std::shared_ptr<const UniqueFd> control,
                std::shared_ptr<ConnectionLife> life, bool takes_parts = false);
  ~ShmConnection() override;

  absl::string_view transport() const override { return "shm"; }
  std::function<bool()> hang_up_look() const override;
  absl::StatusOr<const v1::Batch*> NextBatch() override;
  bool HasBatch() override;
  size_t queued_bytes() const override { return reader_.WaitingBytes(); }
  bool Arm() override;
  void Disarm() override;
  int doorbell() const override { return channel_.server_bell.get(); }
  // After a refusal the worker's doorbell rings when there is room again.
  bool Send(const v1::Event& event) override;
  bool CanSend() override;
  void Close(const absl::Status& reason) override;

 private:
  bool Write(const v1::Event& event, size_t size);
  // An event that is too large for a record: false as Send.
  bool WriteParts(const v1::Event& event);
  bool WriteRefusal(const v1::Event& event);
  void RingClient();

  const bool takes_parts_;
  ShmChannel channel_;
  RingReader reader_;
  RingWriter writer_;
  Worker* const worker_;
  std::shared_ptr<const UniqueFd> control_;
  const std::shared_ptr<ConnectionLife> life_;

  MemoryCharge rings_;
  std::string record_;  // its capacity is kept
  BatchDecoder decoder_;
  std::string event_bytes_;
  std::string whole_;  // the event whose parts are being written
  size_t whole_sent_ = 0;
  uint32_t refused_ = 0;  // size of the last event, if it found no room
  bool closed_ = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_SHM_CONNECTION_H_
