// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/local_server.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "proto/convert.h"
#include "proto/steady_time.h"
#include "proto/version.h"
#include "server/exec/worker.h"
#include "server/limits/room_for_others.h"
#include "server/log/log.h"
#include "server/session/admin.h"
#include "server/session/session.h"
#include "server/transport/control_socket.h"
#include "server/transport/shm_connection.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr uint64_t kListenerId = 0;
constexpr uint64_t kWakeId = 1;
constexpr int kRequestsPerTurn = 16;
constexpr int kAcceptsPerTurn = 64;
// How long a reply may stay unread after its peer was told to go.
constexpr absl::Duration kLinger = absl::Seconds(5);
// Who connects has something to ask.
constexpr absl::Duration kFirstRequestWithin = absl::Seconds(10);
// Who asks on and on and takes no answers has so long to take some: it is not
// listened to meanwhile. So nobody would see that it is gone, if its own socket
// lies unread in its stream, which keeps the stream open.
constexpr absl::Duration kAnswersWithin = absl::Seconds(10);
// Deadlines are kept as exactly as this.
constexpr absl::Duration kDropEvery = absl::Milliseconds(250);
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

}  // namespace

LocalServer::LocalServer(SessionRegistry* registry, Options options)
    : registry_(registry),
      options_(std::move(options)),
      departures_(std::make_shared<Departures>()) {}

LocalServer::~LocalServer() { Stop(); }

absl::StatusOr<std::unique_ptr<LocalServer>> LocalServer::Start(
    SessionRegistry* registry, Options options) {
  std::unique_ptr<LocalServer> server(
      new LocalServer(registry, std::move(options)));
  absl::Status status = server->Open();
  if (!status.ok()) return status;
  server->thread_ = std::thread([raw = server.get()] { raw->Loop(); });
  return server;
}

absl::Status LocalServer::Open() {
  absl::StatusOr<std::unique_ptr<SocketFile>> listener =
      SocketFile::Listen(options_.path, options_.mode);
  if (!listener.ok()) return listener.status();
  listener_ = *std::move(listener);
  path_ = listener_->path();
  epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kListenerId;
  const UniqueFd& bell = departures_->bell();
  bool ok =
      epoll_.ok() && bell.ok() &&
      epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_->fd(), &event) == 0;
  event.data.u64 = kWakeId;
  ok = ok && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell.get(), &event) == 0;
  if (!ok) return absl::ErrnoToStatus(errno, "[local] epoll");
  return absl::OkStatus();
}

void LocalServer::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_release);
  departures_->Ring();
  thread_.join();
  // While there is a worker for what they wait for.
  calls_.Finish();
  asked_.Finish();
  errands_.Finish();
  listener_.reset();
}

// ---- the thread

void LocalServer::Loop() {
  constexpr int kEvents = 64;
  epoll_event events[kEvents];
  while (!stop_.load(std::memory_order_acquire)) {
    const int n = epoll_wait(epoll_.get(), events, kEvents, TimeoutMs());
    for (int i = 0; i < n; ++i) {
      const uint64_t id = events[i].data.u64;
      if (id == kListenerId) {
        Accept();
      } else if (id == kWakeId) {
        AnswerDeparted();
      } else {
        Turn(id, events[i].events);
      }
    }
    std::vector<uint64_t> ready = std::move(ready_);
    ready_.clear();
    for (uint64_t id : ready) {
      auto it = clients_.find(id);
      if (it == clients_.end()) continue;
      it->second->is_ready = false;
      Turn(id, 0);
    }
    if (!leaving_.empty() && SteadyNow() >= next_drop_) DropOverdue();
    if (SteadyNow() >= accept_again_) {
      accept_again_ = SteadyTime::Future();
      epoll_event event = {};
      event.events = EPOLLIN;
      event.data.u64 = kListenerId;
      epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_->fd(), &event);
    }
  }
  while (!clients_.empty()) Drop(clients_.begin()->first);
}

int LocalServer::TimeoutMs() {
  if (!ready_.empty()) return 0;
  SteadyTime next = accept_again_;
  if (!leaving_.empty()) next = std::min(next, next_drop_);
  if (next == SteadyTime::Future()) return -1;
  const int64_t ms = absl::ToInt64Milliseconds(next - SteadyNow());
  return static_cast<int>(std::clamp<int64_t>(ms + 1, 0, 10000));
}

void LocalServer::DropOverdue() {
  const SteadyTime now = SteadyNow();
  next_drop_ = now + kDropEvery;
  std::vector<uint64_t> leaving = std::move(leaving_);
  leaving_.clear();
  for (uint64_t id : leaving) {
    auto it = clients_.find(id);
    if (it == clients_.end()) continue;
    if (it->second->deadline <= now) {
      Drop(id);
    } else if (it->second->deadline != SteadyTime::Future()) {
      leaving_.push_back(id);
    }
  }
}

void LocalServer::AnswerDeparted() {
  for (Departures::Answer& answer : departures_->Take()) {
    auto it = clients_.find(answer.client);
    if (it == clients_.end()) {
      // It has not waited for the session that it asked for.
      if (answer.life != nullptr) ReportHangUp(std::move(answer.life));
      continue;
    }
    Client* const client = it->second.get();
    if (answer.session != nullptr) {
      client->session = std::move(answer.session);
      client->life = std::move(answer.life);
    }
    client->peer.Send(answer.reply, std::move(answer.fds));
    client->departing = false;
    Turn(answer.client, 0);
  }
}

void LocalServer::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    UniqueFd socket(accept4(listener_->fd(), nullptr, nullptr,
                            SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.ok()) {
      Admit(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
               errno == ENOMEM) {
      // The waiting peer would keep the listener readable: look away a while
      // instead of spinning, until somebody leaves.
      spdlog::warn("local: cannot accept a client: {}", strerror(errno));
      PauseAccepting();
      return;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void LocalServer::PauseAccepting() {
  accept_again_ = SteadyNow() + kAcceptPause;
  epoll_event event = {};
  event.data.u64 = kListenerId;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_->fd(), &event);
}

void LocalServer::Admit(UniqueFd socket) {
  const uint64_t id = next_id_++;
  absl::StatusOr<Peer> identity = registry_->trust()->Local(socket.get());
  absl::Status status = identity.status();
  if (status.ok()) status = CheckRoom(identity->user.name);
  if (status.ok()) status = TakeDescriptors(identity->user.name, kDescriptors);
  auto owned =
      std::make_unique<Client>(id, ShareControlSocket(std::move(socket)));
  Client* client = owned.get();
  if (identity.ok()) client->identity = *std::move(identity);
  epoll_event event = {};
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, client->peer.socket()->get(),
                &event) != 0) {
    spdlog::warn("local: cannot watch a client: {}", strerror(errno));
    if (status.ok()) {
      DescriptorShares().Return(client->identity.user.name, kDescriptors);
    }
    return;
  }
  if (status.ok()) {
    client->counted = true;
    ++sockets_[client->identity.user.name];
  }
  client->deadline = SteadyNow() + kFirstRequestWithin;
  leaving_.push_back(id);
  clients_[id] = std::move(owned);
  if (!status.ok()) {
    if (MayLog(client->identity.user.name)) {
      spdlog::warn("local: client refused: {}", status.ToString());
    }
    v1::LocalReply reply;
    StatusToProto(status, reply.mutable_status());
    client->peer.Send(reply, {});
    client->leaving = client->refused = true;
  }
  Turn(id, 0);
}

void LocalServer::Turn(uint64_t id, uint32_t events) {
  auto it = clients_.find(id);
  if (it == clients_.end()) return;
  Client* client = it->second.get();
  // Nobody is left who could read an answer that is to come later.
  const bool gone = client->departing && (events & EPOLLHUP) != 0;
  if ((events & EPOLLERR) != 0 || gone) return Drop(id);
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0 && !client->leaving) {
    // A full buffer at the end of the stream: the rest is not waited for.
    if (!client->peer.WantsInput() || client->peer.output_full()
            ? (events & (EPOLLRDHUP | EPOLLHUP)) != 0
            : !client->peer.Read()) {
      client->leaving = true;
    }
  }
  ServeRequests(client);
  if (!client->peer.Flush()) return Drop(id);
  if (client->departing) return Watch(client);
  const bool more = !client->refused && client->peer.HasRequest();
  if (client->leaving && client->peer.output_empty() && !more) {
    // The session's memory goes with the socket. Who has left may still look
    // at it, and is not told of an end that it asked for.
    const bool stays = client->departed && (events & EPOLLHUP) == 0;
    return stays ? Watch(client) : Drop(id);
  }
  if (client->leaving && !client->lingers) {
    client->lingers = true;
    client->deadline = SteadyNow() + kLinger;
    leaving_.push_back(id);
  }
  WatchAnswers(client);
  if (more && !client->peer.output_full() && !client->is_ready) {
    client->is_ready = true;
    ready_.push_back(id);
  }
  Watch(client);
}

void LocalServer::Watch(Client* client) {
  uint32_t interest = 0;
  if (!client->leaving) {
    interest |= EPOLLRDHUP;
    if (client->peer.WantsInput() && !client->peer.output_full()) {
      interest |= EPOLLIN;
    }
  }
  if (!client->peer.output_empty()) interest |= EPOLLOUT;
  if (interest == client->interest) return;
  client->interest = interest;
  epoll_event event = {};
  event.events = interest;
  event.data.u64 = client->id;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, client->peer.socket()->get(), &event);
}

void LocalServer::WatchAnswers(Client* client) {
  if (client->lingers || client->unread == client->peer.output_full()) return;
  client->unread = !client->unread;
  client->deadline =
      client->unread ? SteadyNow() + kAnswersWithin : SteadyTime::Future();
  if (client->unread) leaving_.push_back(client->id);
}

void LocalServer::Drop(uint64_t id) {
  auto it = clients_.find(id);
  if (it == clients_.end()) return;
  std::unique_ptr<Client> client = std::move(it->second);
  clients_.erase(it);
  if (client->counted) {
    const std::string& user = client->identity.user.name;
    DescriptorShares().Return(user, kDescriptors);
    const auto sockets = sockets_.find(user);
    if (--sockets->second == 0) sockets_.erase(sockets);
  }
  const int fd = client->peer.socket()->get();
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  // The connection may hold the socket a while longer; the peer is to see the
  // end now.
  shutdown(fd, SHUT_RDWR);
  if (client->life != nullptr) ReportHangUp(std::move(client->life));
}

void LocalServer::ServeRequests(Client* client) {
  v1::LocalRequest request;
  for (int i = 0; i < kRequestsPerTurn; ++i) {
    if (client->refused || client->departing || client->peer.output_full()) {
      return;
    }
    absl::StatusOr<bool> next = client->peer.NextRequest(&request);
    if (next.ok() && !*next) return;
    if (!client->lingers) client->deadline = SteadyTime::Future();
    v1::LocalReply reply;
    absl::Status status = next.status();
    if (status.ok() && request.kind_case() == v1::LocalRequest::kGoodbye) {
      const auto now = ServeGoodbye(request.goodbye(), client);
      if (!now.has_value()) return;
      reply.mutable_goodbye();
      status = *now;
    } else if (status.ok()) {
      status = Serve(request, client, &reply);
      if (status.ok() && ServeAside(request, client)) return;
    } else {
      // There is no way back into step with a peer that sends garbage.
      client->leaving = client->refused = true;
      if (MayLog(client->identity.user.name)) {
        spdlog::warn("local: client dropped: {}", status.ToString());
      }
    }
    if (!status.ok()) StatusToProto(status, reply.mutable_status());
    client->peer.Send(reply, {});
  }
}

// ---- requests

// What ServeAside serves is only checked.
absl::Status LocalServer::Serve(const v1::LocalRequest& request, Client* client,
                                v1::LocalReply* reply) {
  switch (request.kind_case()) {
    case v1::LocalRequest::kHello:
      if (client->session == nullptr) return absl::OkStatus();
      return absl::FailedPreconditionError(
          "[local] a control socket carries one session; open another socket.");
    case v1::LocalRequest::kStats:
      *reply->mutable_stats() =
          registry_->StatsFor(client->identity.user, request.stats());
      return absl::OkStatus();
    case v1::LocalRequest::kAdmin:
      return absl::OkStatus();
    case v1::LocalRequest::kCancel:
      reply->mutable_cancel();
      return registry_->Cancel(request.cancel(), client->identity.user);
    case v1::LocalRequest::kAllocate:
    case v1::LocalRequest::kMap:
      if (client->session == nullptr) {
        return absl::FailedPreconditionError(
            "[local] blocks and segments belong to a session: hello must come "
            "first.");
      }
      break;
    case v1::LocalRequest::kGoodbye:  // ServeGoodbye's
    case v1::LocalRequest::KIND_NOT_SET:
      return absl::UnimplementedError(
          "[local] this daemon does not know the request.");
  }
  if (request.kind_case() == v1::LocalRequest::kMap ||
      request.allocate() >= kLargeBlock) {
    return absl::OkStatus();
  }
  absl::StatusOr<v1::Block> block =
      client->session->AllocateBlock(request.allocate());
  if (!block.ok()) return block.status();
  *reply->mutable_block() = *std::move(block);
  return absl::OkStatus();
}

std::optional<absl::Status> LocalServer::ServeGoodbye(
    const v1::GoodbyeRequest& request, Client* client) {
  client->departing = true;
  std::optional<absl::Status> now =
      registry_->Goodbye(request, client->identity.user,
                         [departures = departures_, id = client->id] {
                           Departures::Answer answer;
                           answer.client = id;
                           answer.reply.mutable_goodbye();
                           departures->Add(std::move(answer));
                         });
  if (now.has_value()) client->departing = false;
  client->departed =
      !request.keep() && client->session != nullptr && client->session->ended();
  return now;
}

}  // namespace holdfast
