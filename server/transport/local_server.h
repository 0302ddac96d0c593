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

class Session;
class Worker;

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

  // Of a user's requests that wait for the worker.
  static constexpr int kCallThreads = 8;
  static constexpr int kAskThreads = 4;
  // What the daemon has open for a client with a session.
  static constexpr uint64_t kDescriptors = 4;
  // Whose pages take so long to be made that others should not wait.
  static constexpr uint64_t kLargeBlock = uint64_t{8} << 20;

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
  // Sets a deadline for whoever takes no more answers, and lifts it.
  void WatchAnswers(Client* client);
  void PauseAccepting();
  int TimeoutMs();
  void DropOverdue();
  // Answers those whose answers have come.
  void AnswerDeparted();

  absl::Status Serve(const v1::LocalRequest& request, Client* client,
                     v1::LocalReply* reply);
  // No value: the answer comes later, and until then nothing else of theirs.
  std::optional<absl::Status> ServeGoodbye(const v1::GoodbyeRequest& request,
                                           Client* client);
  // ---- local_server_aside.cc
  // True: another thread serves the request and adds the answer, since it takes
  // its time (a large block) or the worker has to be asked, which may be at a
  // long op. Until then nothing else of the client's is served.
  bool ServeAside(const v1::LocalRequest& request, Client* client);
  // The answer to it; any thread. `session` is the client's.
  static absl::Status Answer(SessionRegistry* registry, const Peer& peer,
                             Session* session,
                             std::shared_ptr<const UniqueFd> socket,
                             const v1::LocalRequest& request,
                             Departures::Answer* answer);
  static absl::Status AnswerHello(SessionRegistry* registry, const Peer& peer,
                                  const v1::HelloRequest& request,
                                  std::shared_ptr<const UniqueFd> socket,
                                  Departures::Answer* answer);
  static absl::Status AnswerMap(Worker* worker, Session* session,
                                uint64_t segment, Departures::Answer* answer);

  struct Client {
    Client(uint64_t id, std::shared_ptr<const UniqueFd> socket)
        : id(id), peer(std::move(socket)) {}

    const uint64_t id;
    LocalPeer peer;
    Peer identity;
    std::shared_ptr<Session> session;      // after Hello
    std::shared_ptr<ConnectionLife> life;  // after Hello
    uint32_t interest = 0;
    bool is_ready = false;   // listed in ready_
    bool departing = false;  // an answer is yet to come
    bool departed = false;   // its session ended by a goodbye
    // No more input: serve what is there, flush, drop.
    bool leaving = false;
    bool refused = false;  // nor is anything served
    bool counted = false;  // in sockets_
    bool lingers = false;  // the deadline is kLinger's
    bool unread = false;   // the deadline is kAnswersWithin's
    SteadyTime deadline = SteadyTime::Future();
  };

  SessionRegistry* const registry_;
  const Options options_;
  std::string path_;
  std::unique_ptr<SocketFile> listener_;
  UniqueFd epoll_;
  const std::shared_ptr<Departures> departures_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  // Blocks, in a user's order; what waits for the worker alone, and so not for
  // memory; and what admins ask, which may be to end what others wait for.
  Errands errands_{1}, calls_{kCallThreads}, asked_{kAskThreads};

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
