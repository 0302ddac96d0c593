// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes on the local control socket, in pieces of any size: the frames are
// the same as in one piece.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/transport/framing.h"

namespace {

struct Frames {
  std::vector<std::string> payloads;
  bool broken = false;
};

Frames Parse(absl::string_view bytes, size_t piece) {
  holdfast::FrameParser parser;
  Frames frames;
  for (size_t at = 0; at < bytes.size() && !frames.broken; at += piece) {
    parser.Append(bytes.substr(at, piece));
    while (true) {
      absl::string_view payload;
      const absl::StatusOr<bool> next = parser.Next(&payload);
      frames.broken = !next.ok();
      if (frames.broken || !*next) break;
      frames.payloads.emplace_back(payload);
    }
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view bytes(reinterpret_cast<const char*>(data) + 1,
                                size - 1);
  const Frames whole = Parse(bytes, std::max<size_t>(1, bytes.size()));
  const Frames pieces = Parse(bytes, 1 + data[0] % 17);
  if (whole.payloads != pieces.payloads || whole.broken != pieces.broken) {
    __builtin_trap();
  }
  return 0;
}
