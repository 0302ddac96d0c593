// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Connection: what a transport does for a session. It carries commands in
// order and exactly once, brings events back, and moves bulk data.
// Thread-safety: Send calls are serialised by the caller; every other method
// from any thread.
#ifndef HOLDFAST_CLIENT_CONNECTION_H_
#define HOLDFAST_CLIENT_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/batch_writer.h"
#include "client/block_marks.h"
#include "client/session_place.h"
#include "proto/holdfast.pb.h"
#include "proto/steady_time.h"

namespace holdfast::client {

// Memory of the session's storage that the client sees; `owner` keeps it
// mapped.
struct MappedBytes {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
  std::shared_ptr<void> owner;
};

// A block of that memory to fill and Put.
struct MappedBlock {
  uint64_t id = 0;
  MappedBytes memory;
};

// How a client leaves its session.
enum class Parting {
  kEnd,     // it ends
  kDetach,  // it stays under its name until somebody attaches to it or ends it
  kLeave,   // the same for its grace period
};

class Connection {
 public:
  // Ends the connection; the session stays for its grace period unless Goodbye
  // came before.
  virtual ~Connection() = default;

  virtual const char* transport() const = 0;  // "shm" or "grpc"
  // The server's answer to Hello.
  virtual const wire::HelloReply& hello() const = 0;

  // Takes over one command. Waits only for backpressure. OutOfRange: the
  // command is too large, nothing was sent. Any other error is final: the
  // connection is gone and could not be resumed.
  virtual absl::Status Send(EncodedCommand command) = 0;

  // The next event, each once and in order. False: none before `deadline`. An
  // error is final.
  virtual absl::StatusOr<bool> NextEvent(SteadyTime deadline,
                                         wire::Event* event) = 0;

  // Sleeps until the peer is known to be gone (then the reason), `timeout` has
  // passed or Wake was called (then OK). For one thread.
  virtual absl::Status Watch(absl::Duration timeout) = 0;
  virtual void Wake() = 0;

  // Largest Put.data, in bytes.
  virtual uint64_t inline_limit() const = 0;

  // ---- bulk data

  // Brings row-major bytes that are too large for a command; fills in the
  // Put's source. `marks`: null, or gets those of what was brought, or of
  // what was there before.
  virtual absl::Status Upload(const void* data, uint64_t bytes,
                              BlockMarks* marks, wire::Put* put) = 0;
  // Fetches a result left for Download.
  virtual absl::Status Download(uint64_t id, uint64_t bytes,
                                std::string* data) = 0;
  // The result will not be fetched.
  virtual void Discard(uint64_t download) = 0;
  // Shared memory only; Unimplemented elsewhere.
  virtual absl::StatusOr<MappedBlock> Allocate(uint64_t bytes) = 0;
  // After a Goodbye: the daemon may take all memory back. What this process
  // still looks at, it keeps.
  virtual void LetGo() {}
  // Unmaps what nothing looks at.
  virtual void TrimMappings() {}
  virtual absl::StatusOr<MappedBytes> Locate(const wire::Place& place) = 0;

  // ---- control

  // `memory_of`: StatsRequest's.
  virtual absl::StatusOr<wire::StatsReply> Stats(uint64_t memory_of) = 0;
  virtual absl::Status Goodbye(Parting parting) = 0;
  // CancelRequest: overtakes what Send took. One attempt, of seconds at most:
  // Unavailable where the connection is cut, and made again.
  virtual absl::Status Cancel(uint64_t /*through*/,
                              const std::string& /*where*/) {
    return absl::UnimplementedError("[cancel] this transport cannot.");
  }

  // For what is said of a connection that broke.
  SessionPlace* place() { return &place_; }

 protected:
  // Of the session that answered `request`.
  void NotePlace(const std::string& address, const wire::HelloRequest& request);

 private:
  SessionPlace place_;
};

// The process of the daemon has ended, and with it all that it held.
absl::Status DaemonGone(const std::string& address, const std::string& reason);

// What both transports say in Hello beside what the options bring.
struct ConnectOptions;
wire::HelloRequest MakeHello(const ConnectOptions& options);
// OK, or the server's refusal as a status.
absl::Status CheckHello(const wire::HelloReply& reply,
                        const std::string& address);

// The wire's status as ours, with the failing op as payload (OpFailureOf).
absl::Status ToAbslStatus(const wire::Status& status);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_CONNECTION_H_
