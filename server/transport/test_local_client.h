// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// TestLocalClient: the client's side of the local protocol by hand, so that a
// test can also do it wrong. Thread-safety: none.
#ifndef HOLDFAST_SERVER_TRANSPORT_TEST_LOCAL_CLIENT_H_
#define HOLDFAST_SERVER_TRANSPORT_TEST_LOCAL_CLIENT_H_

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/holdfast.pb.h"
#include "proto/shm_ring.h"
#include "proto/steady_time.h"
#include "proto/version.h"
#include "server/transport/framing.h"
#include "server/transport/unique_fd.h"

namespace holdfast {

class TestLocalClient {
 public:
  explicit TestLocalClient(const std::string& path)
      : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    connected_ = connect(socket_.get(), reinterpret_cast<sockaddr*>(&address),
                         sizeof(address)) == 0;
  }

  bool connected() const { return connected_; }
  int fd() const { return socket_.get(); }
  void Disconnect() { socket_.Reset(); }

  // False when the server has closed.
  bool SendBytes(absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n =
          send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(n);
    }
    return true;
  }
  bool SendRequest(const v1::LocalRequest& request) {
    return SendBytes(MakeFrame(request));
  }

  // The next reply and its descriptors (in fds()); false at the end of the
  // stream, or when nothing comes for a minute.
  bool Receive(v1::LocalReply* reply) {
    fds_.clear();
    absl::string_view payload;
    while (!*parser_.Next(&payload)) {
      if (!ReceiveBytes()) return false;
    }
    return reply->ParseFromArray(payload.data(), payload.size());
  }
  v1::LocalReply Call(const v1::LocalRequest& request) {
    v1::LocalReply reply;
    if (!SendRequest(request) || !Receive(&reply)) {
      reply.mutable_status()->set_code(-1);
    }
    return reply;
  }
  std::vector<UniqueFd>& fds() { return fds_; }

  // True when the server has closed its side, within a minute.
  bool AtEnd() {
    while (ReceiveBytes()) {
    }
    return at_end_;
  }

  static v1::LocalRequest HelloRequest() {
    v1::LocalRequest request;
    request.mutable_hello()->set_min_version(kProtocolVersion);
    request.mutable_hello()->set_max_version(kProtocolVersion);
    request.mutable_hello()->set_client("test");
    return request;
  }
  // Opens a session and maps its rings.
  v1::LocalReply Hello(const v1::LocalRequest& request = HelloRequest()) {
    v1::LocalReply reply = Call(request);
    if (!reply.has_hello() || reply.has_status() || fds_.size() != 4) {
      return reply;
    }
    submission_ = std::make_unique<RingMemory>(*RingMemory::Map(fds_[0].get()));
    completion_ = std::make_unique<RingMemory>(*RingMemory::Map(fds_[1].get()));
    server_bell_ = std::move(fds_[2]);
    client_bell_ = std::move(fds_[3]);
    writer_ = std::make_unique<RingWriter>(submission_.get());
    reader_ = std::make_unique<RingReader>(completion_.get());
    return reply;
  }

  RingMemory* submission() { return submission_.get(); }
  RingReader* reader() { return reader_.get(); }
  int server_bell() const { return server_bell_.get(); }
  int client_bell() const { return client_bell_.get(); }

  // Writes any bytes as a record and rings.
  bool Submit(absl::string_view record) {
    const SteadyTime end = SteadyNow() + absl::Seconds(60);
    while (!writer_->TryWrite(record.data(), record.size())) {
      if (SteadyNow() > end) return false;
      absl::SleepFor(absl::Microseconds(50));
    }
    if (writer_->ConsumerWaits()) RingServer();
    return true;
  }
  bool Submit(const v1::Batch& batch) {
    return Submit(batch.SerializeAsString());
  }
  void RingServer() {
    const uint64_t one = 1;
    [[maybe_unused]] ssize_t n = write(server_bell_.get(), &one, sizeof(one));
  }
  // Waits for the client's doorbell.
  bool Rung() {
    pollfd bell = {client_bell_.get(), POLLIN, 0};
    return poll(&bell, 1, 60000) == 1;
  }
  // Polls for the next event; false after a minute.
  bool NextEvent(v1::Event* event) {
    const SteadyTime end = SteadyNow() + absl::Seconds(60);
    std::string record;
    while (SteadyNow() < end) {
      if (*reader_->TryRead(&record)) {
        if (reader_->ProducerWaits()) RingServer();
        return event->ParseFromString(record);
      }
      absl::SleepFor(absl::Microseconds(50));
    }
    return false;
  }

 private:
  bool ReceiveBytes() {
    pollfd ready = {socket_.get(), POLLIN, 0};
    if (poll(&ready, 1, 60000) != 1) return false;
    char bytes[65536];
    alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))];
    iovec vector = {bytes, sizeof(bytes)};
    msghdr message = {};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t n = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
    if (n <= 0) {
      at_end_ = true;
      return false;
    }
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
         header = CMSG_NXTHDR(&message, header)) {
      const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd;
        memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
        fds_.emplace_back(fd);
      }
    }
    parser_.Append(absl::string_view(bytes, n));
    return true;
  }

  UniqueFd socket_;
  bool connected_ = false;
  bool at_end_ = false;
  FrameParser parser_;
  std::vector<UniqueFd> fds_;
  std::unique_ptr<RingMemory> submission_;
  std::unique_ptr<RingMemory> completion_;
  UniqueFd server_bell_;
  UniqueFd client_bell_;
  std::unique_ptr<RingWriter> writer_;
  std::unique_ptr<RingReader> reader_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_TEST_LOCAL_CLIENT_H_
