// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/local_socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "client/fork_guard.h"
#include "proto/steady_time.h"

namespace holdfast::client {
namespace {

constexpr uint32_t kMaxFrame = 64 << 20;
constexpr size_t kMaxFds = 8;

std::string Reason() { return strerror(errno); }

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

LocalSocket::LocalSocket(Fd socket, std::string path)
    : socket_(std::move(socket)), path_(std::move(path)) {
  CloseInChildren(socket_.get());
}

LocalSocket::~LocalSocket() { ForgetInChildren(socket_.get()); }

absl::StatusOr<std::unique_ptr<LocalSocket>> LocalSocket::Connect(
    const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[connect] a socket's path must have 1 to ",
        sizeof(address.sun_path) - 1, " characters. Got '", path, "'."));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[connect] no socket: ", Reason(), "."));
  }
  int result = 0;
  do {
    result = connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                     sizeof(address));
  } while (result != 0 && errno == EINTR);
  if (result != 0) {
    const std::string message = absl::StrCat(
        "[connect] no daemon answers at unix:", path, " (", Reason(), ").");
    if (errno == EACCES || errno == EPERM) {
      return absl::PermissionDeniedError(message);
    }
    return absl::NotFoundError(message);
  }
  std::unique_ptr<LocalSocket> made(new LocalSocket(std::move(fd), path));
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(made->fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
      peer.pid > 0) {
    made->peer_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
  }
  return made;
}

absl::StatusOr<uint32_t> LocalSocket::PeerUser() const {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return absl::InternalError(
        absl::StrCat("[connect] the peer is unknown: ", Reason(), "."));
  }
  return peer.uid;
}

bool LocalSocket::PeerEnded() const {
  // Descriptors are closed before a process is known to have ended.
  constexpr int kSoonMs = 500;
  pollfd entry = {peer_.get(), POLLIN, 0};
  return peer_.get() >= 0 && poll(&entry, 1, kSoonMs) > 0;
}

absl::Status LocalSocket::HungUp(const std::string& reason) const {
  const std::string address = absl::StrCat("unix:", path_);
  if (PeerEnded()) return DaemonGone(address, reason);
  return absl::UnavailableError(
      absl::StrCat("[session] the daemon at ", address,
                   " must answer. It hung up (", reason, ")."));
}

absl::Status LocalSocket::Await(short events,  // NOLINT: poll's type
                                SteadyTime deadline) {
  while (true) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - SteadyNow());
    pollfd entry = {socket_.get(), events, 0};
    const int ready = poll(
        &entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) {
      return HungUp(Reason());
    }
    if (ready == 0 && SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "[connect] the daemon at unix:", path_,
          " must answer in time. Got nothing; is it overloaded or stopped?"));
    }
  }
}

absl::Status LocalSocket::WriteAll(const std::string& bytes,
                                   SteadyTime deadline) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = send(socket_.get(), bytes.data() + done,
                           bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      done += n;
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      absl::Status status = Await(POLLOUT, deadline);
      if (!status.ok()) return status;
    } else if (n < 0 && errno != EINTR) {
      return HungUp(Reason());
    }
  }
  return absl::OkStatus();
}

absl::Status LocalSocket::ReadAll(char* data, size_t size, SteadyTime deadline,
                                  std::vector<Fd>* fds) {
  size_t done = 0;
  while (done < size) {
    iovec bytes = {data + done, size - done};
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
    msghdr message = {};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t n =
        recvmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      absl::Status status = Await(POLLIN, deadline);
      if (!status.ok()) return status;
      continue;
    }
    if (n <= 0) {
      return HungUp(n == 0 ? "it closed the connection" : Reason());
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
        continue;
      }
      const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
        Fd owned(fd);
        if (fds != nullptr) fds->push_back(std::move(owned));
      }
    }
    done += n;
  }
  return absl::OkStatus();
}

absl::StatusOr<wire::LocalReply> LocalSocket::Call(
    const wire::LocalRequest& request, SteadyTime deadline,
    std::vector<Fd>* fds) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (broken_) {
    return HungUp("the control socket failed before");
  }
  // Whatever goes wrong half way leaves the stream out of step.
  broken_ = true;
  std::string frame(4, '\0');
  request.AppendToString(&frame);
  const uint32_t length = static_cast<uint32_t>(frame.size() - 4);
  for (int i = 0; i < 4; ++i) frame[i] = static_cast<char>(length >> (8 * i));
  absl::Status status = WriteAll(frame, deadline);
  // A daemon that hangs up at once has said why: that lies here unread.
  if (!status.ok() && !absl::IsUnavailable(status)) return status;
  const absl::Status unsent = std::move(status);
  char header[4];
  status = ReadAll(header, sizeof(header), deadline, fds);
  if (!status.ok()) return unsent.ok() ? status : unsent;
  uint32_t size = 0;
  for (int i = 0; i < 4; ++i) {
    size |= uint32_t{static_cast<uint8_t>(header[i])} << (8 * i);
  }
  if (size > kMaxFrame) {
    return absl::InternalError(
        absl::StrCat("[connect] unix:", path_,
                     " must speak Holdfast's protocol. Got a "
                     "frame of ",
                     size, " bytes."));
  }
  std::string body(size, '\0');
  status = ReadAll(&body[0], size, deadline, fds);
  if (!status.ok()) return status;
  wire::LocalReply reply;
  if (!reply.ParseFromString(body)) {
    return absl::InternalError(absl::StrCat(
        "[connect] unix:", path_, " must speak Holdfast's protocol. Got ", size,
        " bytes that are no reply."));
  }
  broken_ = false;
  if (reply.status().code() != 0) return ToAbslStatus(reply.status());
  return reply;
}

}  // namespace holdfast::client
