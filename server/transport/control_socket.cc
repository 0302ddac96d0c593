// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/control_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast {
namespace {

// Takes what is unread, so that a socket among it is not waited for.
void Drain(int socket) {
  constexpr size_t kMostFds = 253;  // the kernel's limit for one message
  static char bytes[64 << 10];      // one thread comes here
  alignas(cmsghdr) static char control[CMSG_SPACE(kMostFds * sizeof(int))];
  while (true) {
    iovec vector = {bytes, sizeof(bytes)};
    msghdr message = {};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0) return;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd = -1;
        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
        const linger at_once = {0, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        close(fd);
      }
    }
  }
}

// Closes what may keep its thread waiting all the same (a file system in user
// space). Never ends, as its thread may not.
class Closer {
 public:
  static Closer& Get() {
    static Closer* const closer = new Closer;
    return *closer;
  }
  void Close(UniqueFd fd) {
    std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(fd));
    changed_.notify_one();
  }

 private:
  Closer() {
    std::thread([this] { Loop(); }).detach();
  }
  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !waiting_.empty(); });
      UniqueFd fd = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      Drain(fd.get());
      fd.Reset();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UniqueFd> waiting_;  // guarded by mutex_
};

}  // namespace

std::shared_ptr<const UniqueFd> ShareControlSocket(UniqueFd socket) {
  return {new UniqueFd(std::move(socket)), [](UniqueFd* owned) {
            std::unique_ptr<UniqueFd> last(owned);
            if (!last->ok()) return;
            // From here on nothing more comes in.
            shutdown(last->get(), SHUT_RD);
            int unread = 0;
            if (ioctl(last->get(), FIONREAD, &unread) == 0 && unread == 0) {
              return;
            }
            Closer::Get().Close(std::move(*last));
          }};
}

ssize_t ReceivePlain(int socket, void* bytes, size_t size) {
  iovec vector = {bytes, size};
  msghdr message = {};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  const ssize_t n = recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
  if (n <= 0) return n;
  // There is no room for any: they are reported and not taken.
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    errno = EPROTO;
    return -1;
  }
  return recv(socket, bytes, n, MSG_DONTWAIT);
}

}  // namespace holdfast
