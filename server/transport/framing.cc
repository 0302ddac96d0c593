// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/framing.h"

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

uint32_t LoadLength(const char* bytes) {
  const auto* b = reinterpret_cast<const uint8_t*>(bytes);
  return uint32_t{b[0]} | uint32_t{b[1]} << 8 | uint32_t{b[2]} << 16 |
         uint32_t{b[3]} << 24;
}

}  // namespace

uint32_t FrameParser::Length() const {
  return LoadLength(buffer_.data() + begin_);
}

void FrameParser::Append(absl::string_view bytes) {
  // Handed-out frames leave here, so that a payload stays valid until the
  // caller comes back, and memory moves once per read, not per frame.
  if (begin_ > 0) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  buffer_.append(bytes.data(), bytes.size());
}

bool FrameParser::Ready() const {
  if (buffered() < kFrameHeaderBytes) return false;
  const uint32_t length = Length();
  return length > kMaxFrameBytes || buffered() - kFrameHeaderBytes >= length;
}

absl::StatusOr<bool> FrameParser::Next(absl::string_view* payload) {
  if (!Ready()) return false;
  const uint32_t length = Length();
  if (length > kMaxFrameBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[local] a control message must have at most ", kMaxFrameBytes,
        " bytes. Got a frame of ", length, "; is the peer a holdfast client?"));
  }
  *payload =
      absl::string_view(buffer_).substr(begin_ + kFrameHeaderBytes, length);
  begin_ += kFrameHeaderBytes + length;
  return true;
}

std::string MakeFrame(const google::protobuf::MessageLite& message) {
  const uint32_t length = static_cast<uint32_t>(message.ByteSizeLong());
  std::string frame(kFrameHeaderBytes, '\0');
  for (size_t i = 0; i < kFrameHeaderBytes; ++i) {
    frame[i] = static_cast<char>(length >> (8 * i));
  }
  message.AppendToString(&frame);
  return frame;
}

}  // namespace holdfast
