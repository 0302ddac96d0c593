// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/grpc_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/steady_time.h"
#include "server/log/log.h"
#include "server/transport/listen_failure.h"
#include "server/trust/local_users.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr uint64_t kBellId = ~uint64_t{0};
constexpr int kAcceptsPerTurn = 64;
constexpr int kSweepEveryMs = 1000;
// Whoever has a reason to.
constexpr absl::Duration kSweepPause = absl::Milliseconds(20);
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);
// Where the system's limit of descriptors allows as many.
constexpr uint64_t kMaxStrangers = 1024;
// What is sent and not acknowledged for so long ends the connection.
constexpr unsigned kUserTimeoutMs = 20000;

void SetOption(int fd, int level, int option, unsigned value) {
  setsockopt(fd, level, option, &value, sizeof(value));
}

uint64_t InodeOf(int fd) {
  struct stat info = {};
  return fstat(fd, &info) == 0 ? info.st_ino : 0;
}

// The same for what getpeername says and what gRPC does.
std::string PlaceOf(const std::string& peer) {
  const std::optional<PeerAddress> address = ParsePeer(peer);
  if (!address.has_value()) return peer;
  // A scope is spelt in many ways.
  return absl::StrCat(address->host.substr(0, address->host.find('%')), " ",
                      address->port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Listen(
    const std::string& host, int port, uint64_t max_strangers) {
  if (max_strangers == 0) {
    max_strangers =
        std::clamp<uint64_t>(ReservedDescriptors() / 4, 1, kMaxStrangers);
  }
  std::unique_ptr<GrpcListener> result(new GrpcListener(max_strangers));
  const std::string address = absl::StrCat(host, ":", port);
  absl::string_view bare = host;
  if (absl::ConsumePrefix(&bare, "[")) absl::ConsumeSuffix(&bare, "]");
  result->host_ = host;
  result->port_ = port;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  // All addresses of the machine are both families', in one socket if there is
  // IPv6.
  int error = EADDRNOTAVAIL;
  for (const std::string& name :
       bare == "0.0.0.0" ? std::vector<std::string>{"::", std::string(bare)}
                         : std::vector<std::string>{std::string(bare)}) {
    addrinfo* found = nullptr;
    if (getaddrinfo(name.c_str(), absl::StrCat(port).c_str(), &hints, &found) !=
        0) {
      continue;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found,
                                                                 freeaddrinfo);
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
      const int refused = result->Bind(*one);
      if (refused == 0 || error != EADDRINUSE) error = refused;
      if (refused == EADDRINUSE) break;
    }
    if (!result->listeners_.empty() || error == EADDRINUSE) break;
  }
  if (result->listeners_.empty() || error == EADDRINUSE) {
    result->listeners_.clear();  // or ListenFailure would meet our own
    return ListenFailure("listen", address);
  }
  result->epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  result->bell_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kBellId;
  if (!result->epoll_.ok() || !result->bell_.ok() ||
      epoll_ctl(result->epoll_.get(), EPOLL_CTL_ADD, result->bell_.get(),
                &event) != 0) {
    return absl::ErrnoToStatus(errno, "[listen] epoll");
  }
  return result;
}

int GrpcListener::Bind(const addrinfo& address) {
  UniqueFd fd(socket(address.ai_family,
                     address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                     address.ai_protocol));
  if (!fd.ok()) return errno;
  SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.ai_family == AF_INET6) {
    SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  }
  sockaddr_storage name = {};
  memcpy(&name, address.ai_addr, address.ai_addrlen);
  // All listen on the port that the first was given.
  const uint16_t port = htons(static_cast<uint16_t>(port_));
  if (address.ai_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&name)->sin6_port = port;
  } else {
    reinterpret_cast<sockaddr_in*>(&name)->sin_port = port;
  }
  const auto* const raw = reinterpret_cast<const sockaddr*>(&name);
  if (bind(fd.get(), raw, address.ai_addrlen) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return errno;
  }
  socklen_t size = sizeof(name);
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &size);
  port_ = ntohs(name.ss_family == AF_INET6
                    ? reinterpret_cast<sockaddr_in6*>(&name)->sin6_port
                    : reinterpret_cast<sockaddr_in*>(&name)->sin_port);
  listeners_.push_back(std::move(fd));
  return 0;
}

GrpcListener::~GrpcListener() { Stop(); }

void GrpcListener::Start(std::unique_ptr<Acceptor> acceptor) {
  acceptor_ = std::move(acceptor);
  for (size_t i = 0; i < listeners_.size(); ++i) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = i;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listeners_[i].get(), &event);
  }
  thread_ = std::thread([this] { Loop(); });
}

void GrpcListener::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(bell_.get(), &one, sizeof(one));
  thread_.join();
  listeners_.clear();
  std::lock_guard<std::mutex> lock(mutex_);
  while (!connections_.empty()) Remove(connections_.begin()->first);
}

std::string GrpcListener::PeerOf(int fd) {
  sockaddr_storage name = {};
  socklen_t size = sizeof(name);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return "";
  }
  char text[INET6_ADDRSTRLEN] = "";
  if (name.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&name);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    return absl::StrCat("ipv4:", text, ":", ntohs(v4->sin_port));
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&name);
  inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
  absl::string_view host = text;
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) &&
      absl::ConsumePrefix(&host, "::ffff:")) {
    return absl::StrCat("ipv4:", host, ":", ntohs(v6->sin6_port));
  }
  return absl::StrCat("ipv6:[", host, "]:", ntohs(v6->sin6_port));
}

// ---- the thread

void GrpcListener::Loop() {
  constexpr int kEvents = 16;
  epoll_event events[kEvents];
  bool any = false;
  while (!stop_.load()) {
    const int n =
        epoll_wait(epoll_.get(), events, kEvents, any ? kSweepEveryMs : -1);
    for (int i = 0; i < n; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id != kBellId) Accept(listeners_[id].get());
    }
    std::lock_guard<std::mutex> lock(mutex_);
    if (SteadyNow() > sweep_again_ + absl::Milliseconds(kSweepEveryMs)) Sweep();
    any = !connections_.empty();
  }
}

void GrpcListener::Accept(int listener) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    UniqueFd socket(
        accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.ok()) {
      Add(std::move(socket), listener);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
               errno == ENOMEM) {
      // Until somebody leaves: the listener stays readable.
      if (MayLog("")) {
        spdlog::warn("grpc: cannot accept a client: {}", strerror(errno));
      }
      absl::SleepFor(kAcceptPause);
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void GrpcListener::Add(UniqueFd socket, int listener) {
  const int fd = socket.get();
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, kUserTimeoutMs);
  const std::string peer = PeerOf(fd);
  if (peer.empty()) return;  // gone already
  Connection added;
  added.fd = fd;
  added.inode = InodeOf(fd);
  added.place = PlaceOf(peer);
  added.origin = OriginOf(peer, absl::StrCat(host_, ":", port_));
  {
    std::lock_guard<std::mutex> lock(mutex_);
    MakeRoom(added.origin);
    const uint64_t id = next_id_++;
    std::list<uint64_t>& own = strangers_[added.origin];
    added.turn = own.insert(own.end(), id);
    ++stranger_count_;
    by_place_[added.place] = id;
    connections_.emplace(id, std::move(added));
  }
  Acceptor::NewConnectionParameters parameters;
  parameters.listener_fd = listener;
  parameters.fd = socket.release();
  acceptor_->HandleNewConnection(&parameters);
}

void GrpcListener::MakeRoom(const std::string& origin) {
  const auto crowded = [&] {
    const auto own = strangers_.find(origin);
    if (own != strangers_.end() && own->second.size() >= max_strangers_ / 2) {
      return own;
    }
    if (stranger_count_ < max_strangers_) return strangers_.end();
    return std::max_element(strangers_.begin(), strangers_.end(),
                            [](const auto& a, const auto& b) {
                              return a.second.size() < b.second.size();
                            });
  };
  if (crowded() == strangers_.end()) return;
  Sweep();
  const auto most = crowded();
  if (most == strangers_.end()) return;
  if (MayLog(most->first)) {
    spdlog::warn(
        "grpc: a connection of {} is closed: {} that have shown no "
        "credentials yet are open there",
        most->first, most->second.size());
  }
  const uint64_t oldest = most->second.front();
  HangUp(connections_[oldest]);
  Remove(oldest);
}

void GrpcListener::HangUp(const Connection& connection) {
  // The number may be another file's at any moment: this one stays the same.
  const UniqueFd socket(fcntl(connection.fd, F_DUPFD_CLOEXEC, 0));
  if (!socket.ok() || InodeOf(socket.get()) != connection.inode) return;
  shutdown(socket.get(), SHUT_RDWR);  // gRPC sees the end and closes its own
}

void GrpcListener::Sweep() {
  const SteadyTime now = SteadyNow();
  if (now < sweep_again_) return;
  sweep_again_ = now + kSweepPause;
  std::vector<uint64_t> gone;
  for (const auto& [id, connection] : connections_) {
    if (InodeOf(connection.fd) != connection.inode) gone.push_back(id);
  }
  for (const uint64_t id : gone) Remove(id);
}

void GrpcListener::LeaveStrangers(const Connection& connection) {
  const auto own = strangers_.find(connection.origin);
  own->second.erase(connection.turn);
  if (own->second.empty()) strangers_.erase(own);
  --stranger_count_;
}

void GrpcListener::Remove(uint64_t id) {
  const auto it = connections_.find(id);
  const Connection& connection = it->second;
  if (connection.user.empty()) {
    LeaveStrangers(connection);
  } else {
    users_.Return(connection.user);
    DescriptorShares().Return(connection.user);
  }
  const auto place = by_place_.find(connection.place);
  // Its port may be another's by now.
  if (place != by_place_.end() && place->second == id) by_place_.erase(place);
  connections_.erase(it);
}

// ---- any thread

bool GrpcListener::HasEnded(const std::string& peer) const {
  const std::string place = PlaceOf(peer);
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = by_place_.find(place);
  if (found == by_place_.end()) return true;
  const Connection& connection = connections_.find(found->second)->second;
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(connection.fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return true;  // the number is another file's, or nobody's
  }
  return InodeOf(connection.fd) != connection.inode ||
         info.tcpi_state != TCP_ESTABLISHED;
}

absl::Status GrpcListener::Admit(const std::string& peer,
                                 const std::string& user, uint64_t most) {
  const std::string place = PlaceOf(peer);
  std::lock_guard<std::mutex> lock(mutex_);
  if (most != 0 && users_.of(user) >= most) Sweep();
  const auto found = by_place_.find(place);
  if (found == by_place_.end()) return absl::OkStatus();  // it has just ended
  Connection& connection = connections_.find(found->second)->second;
  if (!connection.user.empty()) return absl::OkStatus();
  const uint64_t own = users_.of(user);
  if (most != 0 && own >= most) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "[grpc] ", user, " may have at most ", most,
        " connections over gRPC and has ", own,
        ". Close some, or ask an admin for more (holdfast limits)."));
  }
  if (!users_.Take(user)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[grpc] the daemon serves at most ", kMaxConnections,
                     " connections, the last of them of users with few; ", user,
                     " has ", own, "."));
  }
  if (absl::Status s = TakeDescriptors(user, 1); !s.ok()) {
    users_.Return(user);
    return absl::Status(s.code(), absl::StrCat("[grpc] ", s.message(), "."));
  }
  LeaveStrangers(connection);
  connection.user = user;
  return absl::OkStatus();
}

}  // namespace holdfast
