// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Frames of the local control socket: a 4-byte little-endian length, then that
// many bytes. FrameParser collects bytes as they come and hands out whole
// frames; it holds at most one unfinished frame and what arrived behind it.
// Thread-safety: none; one parser per peer.
#ifndef HOLDFAST_SERVER_TRANSPORT_FRAMING_H_
#define HOLDFAST_SERVER_TRANSPORT_FRAMING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"

namespace holdfast {

inline constexpr uint32_t kMaxFrameBytes = 1 << 20;
inline constexpr size_t kFrameHeaderBytes = 4;

class FrameParser {
 public:
  void Append(absl::string_view bytes);
  // The next whole frame's payload, valid until the following call of any
  // method. False: more bytes are needed. An error, from then on: a frame
  // longer than kMaxFrameBytes.
  absl::StatusOr<bool> Next(absl::string_view* payload);
  // True when Next would not ask for more bytes.
  bool Ready() const;
  size_t buffered() const { return buffer_.size() - begin_; }

 private:
  uint32_t Length() const;  // REQUIRES: a header is there

  std::string buffer_;
  size_t begin_ = 0;  // bytes of it already handed out
};

// The frame of a message. REQUIRES: the message has at most kMaxFrameBytes
// when a FrameParser is to read it.
std::string MakeFrame(const google::protobuf::MessageLite& message);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_FRAMING_H_
