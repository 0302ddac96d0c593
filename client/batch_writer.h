// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// BatchWriter: encodes commands as wire bytes, straight into a buffer that is
// reused. One op costs tens of nanoseconds; building and serialising the
// generated classes would cost several times that. Commands that are not
// issued per op go through the generated classes.
// Thread-safety: none; guarded by the session's lock.
#ifndef HOLDFAST_CLIENT_BATCH_WRITER_H_
#define HOLDFAST_CLIENT_BATCH_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/random_stream.h"
#include "client/tensor.h"
#include "ops/attrs.h"
#include "proto/holdfast.pb.h"

namespace holdfast::client {

namespace wire = ::holdfast::v1;

// A `commands` field of a Batch: tag, length and the Command. At least
// kBatchHeadroom writable bytes lie before `data`, so that a transport can put
// the Batch's own fields there without moving anything. Valid until the next
// call on the writer.
struct EncodedCommand {
  uint8_t* data = nullptr;
  size_t size = 0;
  // A wait for room may end with Cancelled, and nothing was sent (interrupt.h).
  bool may_be_interrupted = false;
};

inline constexpr size_t kBatchHeadroom = 16;

// Writes Batch.sequence into the bytes that end at `end` and returns where it
// begins, at most kBatchHeadroom before.
uint8_t* PrependSequence(uint8_t* end, uint64_t sequence);

struct OpRequest {
  uint32_t op = 0;  // id from Hello
  absl::Span<const Tensor> inputs;
  uint64_t outputs = 0;  // 0: none named
  const Attrs* attrs = nullptr;
  bool record = false;
  bool inplace = false;
  bool has_random = false;
  RandomPlace random;
};

class BatchWriter {
 public:
  BatchWriter();

  EncodedCommand EncodeOp(const OpRequest& request,
                          absl::Span<const uint64_t> releases);
  EncodedCommand EncodeReleases(absl::Span<const uint64_t> releases);
  EncodedCommand Encode(const wire::Command& command,
                        absl::Span<const uint64_t> releases);
  // The Command's own bytes, as long as `command` is valid.
  absl::string_view Body(EncodedCommand command) const;

 private:
  // Where a Command's fields begin, with room for `bytes` of them.
  uint8_t* Begin(size_t bytes);
  // Puts the field's tag and length before [begin_, end).
  EncodedCommand Finish(uint8_t* end);

  std::unique_ptr<uint8_t[]> buffer_;
  size_t capacity_ = 0;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_BATCH_WRITER_H_
