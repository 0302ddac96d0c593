// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ShmConnection: a session on the same host: commands and events are records
// of two rings in shared memory, bulk data lies in segments that both sides
// map, and the control socket tells at once when the daemon dies.
// Thread-safety: as Connection says.
#ifndef HOLDFAST_CLIENT_SHM_CONNECTION_H_
#define HOLDFAST_CLIENT_SHM_CONNECTION_H_

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "client/arena.h"
#include "client/connection.h"
#include "client/local_socket.h"
#include "proto/shm_ring.h"
#include "proto/steady_time.h"

namespace holdfast::client {

class ShmConnection final : public Connection {
 public:
  // Says Hello over `socket` and maps what the daemon answers with.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      std::unique_ptr<LocalSocket> socket, const wire::HelloRequest& hello,
      std::string address, double timeout_seconds);

  const char* transport() const override { return "shm"; }
  const wire::HelloReply& hello() const override { return hello_; }

  absl::Status Send(EncodedCommand command) override;
  absl::StatusOr<bool> NextEvent(SteadyTime deadline,
                                 wire::Event* event) override;
  absl::Status Watch(absl::Duration timeout) override;
  void Wake() override;

  uint64_t inline_limit() const override;
  absl::Status Upload(const void* data, uint64_t bytes, BlockMarks* marks,
                      wire::Put* put) override;
  absl::Status Download(uint64_t id, uint64_t bytes,
                        std::string* data) override;
  void Discard(uint64_t) override {}
  absl::StatusOr<MappedBlock> Allocate(uint64_t bytes) override;
  absl::StatusOr<MappedBytes> Locate(const wire::Place& place) override;
  void LetGo() override;
  void TrimMappings() override { arena_.Trim(); }
  absl::StatusOr<wire::StatsReply> Stats(uint64_t memory_of) override;
  absl::Status Goodbye(Parting parting) override;
  absl::Status Cancel(uint64_t through, const std::string& where) override;

 private:
  // Order on the wire.
  struct Descriptors {
    Fd submission, completion, server_bell, client_bell;
  };

  ShmConnection(std::unique_ptr<LocalSocket> socket, std::string address,
                double timeout_seconds, wire::HelloReply hello,
                Descriptors descriptors, RingMemory submission,
                RingMemory completion, Fd wake, Fd inbox_bell);

  SteadyTime Deadline() const;
  absl::StatusOr<wire::Block> AskForBlock(uint64_t bytes);
  // Why the session ended: the daemon's own word if it left one.
  absl::Status Gone(const std::string& reason);
  // For one that hung up without a word.
  absl::Status WhatBecameOfIt(const std::string& reason);
  // The slow path of Send: waits until the daemon has made room.
  absl::Status WriteWaiting(const uint8_t* record, uint32_t size);
  // Moves what has arrived to the inbox, so that a daemon that waits for us to
  // read can go on.
  absl::Status DrainEvents() ABSL_EXCLUSIVE_LOCKS_REQUIRED(events_mutex_);

  const std::unique_ptr<LocalSocket> socket_;
  const std::string address_;
  const double timeout_seconds_;
  const wire::HelloReply hello_;
  const Descriptors descriptors_;
  const Fd wake_;        // Wake rings it
  const Fd inbox_bell_;  // one thread tells another that the inbox has grown
  RingMemory submission_;
  RingMemory completion_;
  Arena arena_;
  std::atomic<bool> closed_{false};

  // The sender's (serialised by the caller).
  RingWriter writer_;
  uint64_t sequence_ = 0;

  std::mutex events_mutex_;
  RingReader reader_ ABSL_GUARDED_BY(events_mutex_);
  std::string record_ ABSL_GUARDED_BY(events_mutex_);
  std::string parts_ ABSL_GUARDED_BY(events_mutex_);  // of an event
  std::deque<wire::Event> inbox_ ABSL_GUARDED_BY(events_mutex_);
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_SHM_CONNECTION_H_
