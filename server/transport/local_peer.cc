// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/local_peer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/transport/control_socket.h"

namespace holdfast {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr size_t kMaxReplies = 16;
constexpr size_t kMaxReplyBytes = 1 << 20;
constexpr size_t kMaxFds = 8;

}  // namespace

bool LocalPeer::Read() {
  char bytes[kReadBytes];
  const ssize_t n = ReceivePlain(socket_->get(), bytes, sizeof(bytes));
  if (n > 0) {
    parser_.Append(absl::string_view(bytes, n));
    return true;
  }
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

bool LocalPeer::WantsInput() const {
  return parser_.buffered() < kFrameHeaderBytes + kMaxFrameBytes;
}

absl::StatusOr<bool> LocalPeer::NextRequest(v1::LocalRequest* request) {
  absl::string_view payload;
  absl::StatusOr<bool> next = parser_.Next(&payload);
  if (!next.ok() || !*next) return next;
  if (!request->ParseFromArray(payload.data(),
                               static_cast<int>(payload.size()))) {
    return absl::InvalidArgumentError(
        "[local] a control message must be a LocalRequest. Got bytes that are "
        "none; is the peer a holdfast client?");
  }
  return true;
}

void LocalPeer::Send(const v1::LocalReply& reply, std::vector<UniqueFd> fds) {
  output_.push_back({MakeFrame(reply), 0, std::move(fds)});
  output_bytes_ += output_.back().bytes.size();
}

bool LocalPeer::output_full() const {
  return output_.size() >= kMaxReplies || output_bytes_ >= kMaxReplyBytes;
}

bool LocalPeer::Flush() {
  while (!output_.empty()) {
    Reply& reply = output_.front();
    iovec bytes = {&reply.bytes[reply.sent], reply.bytes.size() - reply.sent};
    msghdr message = {};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
    if (!reply.fds.empty()) {
      int fds[kMaxFds];
      const size_t count = reply.fds.size();
      for (size_t i = 0; i < count; ++i) fds[i] = reply.fds[i].get();
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(count * sizeof(int));
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(count * sizeof(int));
      memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    }
    const ssize_t n =
        sendmsg(socket_->get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
    reply.fds.clear();  // they went with the first byte
    reply.sent += n;
    if (reply.sent < reply.bytes.size()) return true;
    output_bytes_ -= reply.bytes.size();
    output_.pop_front();
  }
  return true;
}

}  // namespace holdfast
