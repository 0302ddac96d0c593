// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// LocalServer: the daemon's door for clients on the same host. One thread
// serves the control sockets of all of them (Hello, blocks, segments, stats);
// batches and events then travel through shared memory (shm_connection.h) and
// never pass here. A peer that misbehaves is answered and dropped, and none
// can make the others wait.
// Thread-safety: Start, Stop and the destructor from one thread.
#ifndef HOLDFAST_SERVER_TRANSPORT_LOCAL_SERVER_H_
#define HOLDFAST_SERVER_TRANSPORT_LOCAL_SERVER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/holdfast.pb.h"
#include "proto/steady_time.h"
#include "server/session/session_registry.h"
#include "server/transport/departures.h"
#include "server/transport/errands.h"
#include "server/transport/hang_up.h"
#include "server/transport/local_peer.h"
#include "server/transport/socket_file.h"
#include "server/transport/unique_fd.h"

namespace holdfast {

class LocalServer {
 public:
  struct Options {
    std::string path;
    int max_clients = 10000;
    mode_t mode = 0600;  // of the socket: who may connect
  };
  // `registry` must outlive the server.
  static absl::StatusOr<std::unique_ptr<LocalServer>> Start(
      SessionRegistry* registry, Options options);
  ~LocalServer();  // stops

  // Closes the door and every control socket. Idempotent.
  void Stop();
  const std::string& path() const { return path_; }

 private:
  struct Client;

  LocalServer(SessionRegistry* registry, Options options);
  absl::Status Open();

  // ---- the thread's
  void Loop();
  void Accept();
  void Admit(UniqueFd socket);
  // OK when the user may have one more socket.
  absl::Status CheckRoom(const std::string& user);
  // Reads, serves and writes what can be; may drop the client.
  void Turn(uint64_t id, uint32_t events);
  void ServeRequests(Client* client);
  void Drop(uint64_t id);
  void Watch(Client* client);
  void PauseAccepting();
  int TimeoutMs();
  void DropOverdue();
  // Answers those whose answers have come.
  void AnswerDeparted();

  // `fds` receives descriptors to pass.
  absl::Status Serve(const v1::LocalRequest& request, Client* client,
                     v1::LocalReply* reply, std::vector<UniqueFd>* fds);
  // No value: the answer comes later, and until then nothing else of theirs.
  std::optional<absl::Status> ServeGoodbye(const v1::GoodbyeRequest& request,
                                           Client* client);
  // The same, for a block that takes its time.
  bool AllocateAside(uint64_t bytes, Client* client);
  absl::Status ServeHello(const v1::HelloRequest& request, Client* client,
                          v1::LocalReply* reply, std::vector<UniqueFd>* fds);
  absl::Status ServeMap(uint64_t segment, Client* client, v1::LocalReply* reply,
                        std::vector<UniqueFd>* fds);

  SessionRegistry* const registry_;
  const Options options_;
  std::string path_;
  std::unique_ptr<SocketFile> listener_;
  UniqueFd epoll_;
  const std::shared_ptr<Departures> departures_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  Errands errands_;

  // The thread's.
  absl::flat_hash_map<uint64_t, std::unique_ptr<Client>> clients_;
  uint64_t next_id_ = 2;           // 0: the listener, 1: the wake-up
  std::vector<uint64_t> ready_;    // have requests left over from their turn
  std::vector<uint64_t> leaving_;  // to be dropped at a deadline at the latest
  SteadyTime next_drop_ = SteadyTime::Past();      // when to look at them
  absl::flat_hash_map<std::string, int> sockets_;  // by user
  SteadyTime accept_again_ = SteadyTime::Future();
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_LOCAL_SERVER_H_
