// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// LocalPeer: the control socket of one local client: requests in, replies and
// descriptors out. Nothing here waits, and what it holds is bounded, so that a
// peer that sends half a frame or never reads costs one buffer.
// Thread-safety: the local server's thread only. Shares the socket with the
// session's ShmConnection.
#ifndef HOLDFAST_SERVER_TRANSPORT_LOCAL_PEER_H_
#define HOLDFAST_SERVER_TRANSPORT_LOCAL_PEER_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/holdfast.pb.h"
#include "server/transport/framing.h"
#include "server/transport/unique_fd.h"

namespace holdfast {

class LocalPeer {
 public:
  explicit LocalPeer(std::shared_ptr<const UniqueFd> socket)
      : socket_(std::move(socket)) {}

  const std::shared_ptr<const UniqueFd>& socket() const { return socket_; }

  // Takes in what has arrived, a limited amount per call. False: the peer has
  // closed its side or sends descriptors, or the socket is broken; what came
  // before still counts.
  bool Read();
  // The next whole request; an error when the bytes are none.
  absl::StatusOr<bool> NextRequest(v1::LocalRequest* request);
  bool HasRequest() const { return parser_.Ready(); }
  // False while a whole frame of the largest size waits to be served.
  bool WantsInput() const;

  // Queues a reply, with descriptors that arrive with its first byte.
  void Send(const v1::LocalReply& reply, std::vector<UniqueFd> fds);
  // Writes what the socket takes. False: the socket is broken.
  bool Flush();
  bool output_empty() const { return output_.empty(); }
  // Time to stop serving a peer that does not read its replies.
  bool output_full() const;

 private:
  struct Reply {
    std::string bytes;
    size_t sent = 0;
    std::vector<UniqueFd> fds;
  };

  const std::shared_ptr<const UniqueFd> socket_;
  FrameParser parser_;
  std::deque<Reply> output_;
  size_t output_bytes_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_LOCAL_PEER_H_
