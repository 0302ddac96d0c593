// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_connections.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/steady_time.h"
#include "server/limits/room_for_others.h"
#include "server/transport/unique_fd.h"
#include "server/trust/local_users.h"

namespace holdfast {
namespace {

// For a request and its answer.
constexpr absl::Duration kWithin = absl::Seconds(15);

using NameOf = int (*)(int, sockaddr*, socklen_t*);

void Describe(int socket, NameOf name_of, std::string* ip, int* port) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  char host[NI_MAXHOST] = "", service[NI_MAXSERV] = "";
  auto* const raw = reinterpret_cast<sockaddr*>(&name);
  if (name_of(socket, raw, &size) != 0 ||
      getnameinfo(raw, size, host, sizeof(host), service, sizeof(service),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return;
  }
  *ip = host;
  *port = std::atoi(service);
}

// One connection's bytes, until a deadline.
class DeadlineStream final : public httplib::Stream {
 public:
  explicit DeadlineStream(int socket)
      : socket_(socket), deadline_(SteadyNow() + kWithin) {}

  bool is_readable() const override { return Wait(POLLIN); }
  bool is_writable() const override { return Wait(POLLOUT); }

  // The library asks byte by byte.
  ssize_t read(char* data, size_t size) override {
    if (begin_ == end_) {
      begin_ = end_ = 0;
      if (!Wait(POLLIN)) return -1;
      const ssize_t n = recv(socket_, buffer_, sizeof(buffer_), MSG_DONTWAIT);
      if (n <= 0) return n;
      end_ = static_cast<size_t>(n);
    }
    const size_t bytes = std::min(size, end_ - begin_);
    std::memcpy(data, buffer_ + begin_, bytes);
    begin_ += bytes;
    return static_cast<ssize_t>(bytes);
  }
  ssize_t write(const char* data, size_t size) override {
    if (!Wait(POLLOUT)) return -1;
    return send(socket_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    Describe(socket_, getpeername, &ip, &port);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    Describe(socket_, getsockname, &ip, &port);
  }
  socket_t socket() const override { return socket_; }

 private:
  bool Wait(short events) const {
    while (true) {
      const int64_t ms = absl::ToInt64Milliseconds(deadline_ - SteadyNow());
      if (ms <= 0) return false;
      pollfd ready = {socket_, events, 0};
      const int n = poll(&ready, 1, static_cast<int>(ms));
      if (n >= 0 || errno != EINTR) return n > 0;
    }
  }

  const int socket_;
  const SteadyTime deadline_;
  char buffer_[4096];
  size_t begin_ = 0, end_ = 0;
};

// What the library gives to a queue of threads begins threads itself.
class AtOnce final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override { task(); }
  void shutdown() override {}
};

}  // namespace

HttpConnections::HttpConnections()
    : most_(std::clamp<uint64_t>(ReservedDescriptors() / 8, 8, 64)) {
  new_task_queue = [] { return new AtOnce; };
}

HttpConnections::~HttpConnections() { Finish(); }

void HttpConnections::set_address(const std::string& address) {
  address_ = address;
  // The library has five wait; who comes meanwhile tries again in a second.
  ::listen(svr_sock_, SOMAXCONN);
}

void HttpConnections::Finish() {
  std::unique_lock<std::mutex> lock(mutex_);
  // Answers still go out; nobody waits for requests.
  for (const auto& [origin, sockets] : sockets_) {
    for (const int socket : sockets) shutdown(socket, SHUT_RD);
  }
  done_.wait(lock, [this] { return threads_ == 0; });
}

void HttpConnections::MakeRoom(const std::string& origin) {
  auto most = sockets_.find(origin);
  if (most == sockets_.end() || most->second.size() < most_ / 2) {
    if (open_ < most_) return;
    most = std::max_element(sockets_.begin(), sockets_.end(),
                            [](const auto& a, const auto& b) {
                              return a.second.size() < b.second.size();
                            });
  }
  // Its thread sees the end, and is about to leave.
  shutdown(most->second.front(), SHUT_RDWR);
  most->second.pop_front();
  --open_;
  if (most->second.empty()) sockets_.erase(most);
}

bool HttpConnections::process_and_close_socket(socket_t socket) {
  UniqueFd owned(socket);
  std::string ip;
  int port = 0;
  Describe(socket, getpeername, &ip, &port);
  const std::string peer = absl::StrContains(ip, ':')
                               ? absl::StrCat("ipv6:[", ip, "]:", port)
                               : absl::StrCat("ipv4:", ip, ":", port);
  const std::string origin = OriginOf(peer, address_);
  std::unique_lock<std::mutex> lock(mutex_);
  MakeRoom(origin);
  // Those that were closed are about to end.
  done_.wait(lock, [this] { return threads_ < 2 * most_; });
  ++threads_;
  ++open_;
  sockets_[origin].push_back(socket);
  try {
    std::thread([this, socket, origin] {
      Serve(socket);
      const UniqueFd closed(socket);
      std::lock_guard<std::mutex> lock(mutex_);
      const auto own = sockets_.find(origin);
      if (own != sockets_.end()) {
        // While it is open its number is nobody else's.
        const size_t before = own->second.size();
        own->second.remove(socket);
        open_ -= before - own->second.size();
        if (own->second.empty()) sockets_.erase(own);
      }
      --threads_;
      // Under the lock: who waits for it may destroy this.
      done_.notify_all();
    }).detach();
  } catch (const std::system_error&) {  // the system has no thread left
    --threads_;
    --open_;
    sockets_[origin].pop_back();
    return false;
  }
  owned.release();
  return true;
}

void HttpConnections::Serve(int socket) {
  DeadlineStream stream(socket);
  bool closed = false;
  process_request(stream, /*close_connection=*/true, closed, nullptr);
  shutdown(socket, SHUT_RDWR);
}

}  // namespace holdfast
