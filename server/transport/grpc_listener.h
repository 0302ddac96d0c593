// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GrpcListener: takes connections for gRPC, which itself would take as many as
// come, from whomever. A connection belongs to strangers until a call on it
// shows credentials, and to that call's user from then on. Users have shares;
// strangers together have a small one, where the oldest of whoever has most
// goes first: an honest client is a stranger for as long as its first call
// travels, so that nobody can keep it out by being many.
// Thread-safety: Listen, Start and Stop from one thread, Admit from any.
#ifndef HOLDFAST_SERVER_TRANSPORT_GRPC_LISTENER_H_
#define HOLDFAST_SERVER_TRANSPORT_GRPC_LISTENER_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_builder.h"
#include "proto/steady_time.h"
#include "server/limits/room_for_others.h"
#include "server/transport/unique_fd.h"

struct addrinfo;

namespace holdfast {

class GrpcListener {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;

  // Of all users together.
  static constexpr uint64_t kMaxConnections = 10000;

  // Port 0 takes a free one. `max_strangers`: connections; 0: as the system's
  // limit of descriptors allows.
  static absl::StatusOr<std::unique_ptr<GrpcListener>> Listen(
      const std::string& host, int port, uint64_t max_strangers);
  ~GrpcListener();  // stops

  int port() const { return port_; }
  // From now on connections are taken and handed to `acceptor`.
  void Start(std::unique_ptr<Acceptor> acceptor);
  // No more are taken. Idempotent.
  void Stop();

  // A call of that user's has come over the connection of `peer`, as gRPC
  // spells it. RESOURCE_EXHAUSTED: the user has `most` others (0: no such
  // limit), or the rest is for others; the connection stays a stranger's.
  absl::Status Admit(const std::string& peer, const std::string& user,
                     uint64_t most);
  // Whether the other end of that connection has closed it, or is gone, as the
  // system knows before gRPC hears of it.
  bool HasEnded(const std::string& peer) const;

 private:
  struct Connection {
    // gRPC owns the descriptor and may close it at any time: while the number
    // is this file's, the connection is there. A duplicate would be told of
    // the end, but gRPC counts on its own being the last.
    int fd = -1;
    uint64_t inode = 0;
    std::string place;                   // host and port of the other end
    std::string origin;                  // of a stranger: see OriginOf
    std::string user;                    // "": a stranger's
    std::list<uint64_t>::iterator turn;  // in strangers_[origin]
  };

  explicit GrpcListener(uint64_t max_strangers)
      : max_strangers_(max_strangers) {}
  // 0, or errno.
  int Bind(const addrinfo& address);
  // What the other end is called in gRPC's words.
  static std::string PeerOf(int fd);

  // ---- the thread's
  void Loop();
  void Accept(int listener);
  void Add(UniqueFd socket, int listener);
  // ---- REQUIRES: mutex_ held
  void MakeRoom(const std::string& origin);
  // Forgets those that gRPC has closed.
  void Sweep();
  void LeaveStrangers(const Connection& connection);
  void Remove(uint64_t id);
  static void HangUp(const Connection& connection);

  const uint64_t max_strangers_;
  std::string host_;
  int port_ = 0;
  std::vector<UniqueFd> listeners_;
  UniqueFd epoll_, bell_;
  std::unique_ptr<Acceptor> acceptor_;
  std::thread thread_;
  std::atomic<bool> stop_{false};

  mutable std::mutex mutex_;  // guards what follows
  uint64_t next_id_ = 1;
  SteadyTime sweep_again_ = SteadyTime::Past();
  absl::flat_hash_map<uint64_t, Connection> connections_;
  absl::flat_hash_map<std::string, uint64_t> by_place_;
  std::map<std::string, std::list<uint64_t>> strangers_;  // the oldest first
  uint64_t stranger_count_ = 0;
  UserShares users_{kMaxConnections};
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_GRPC_LISTENER_H_
