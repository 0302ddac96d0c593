// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// BatchDecoder: bytes to Batch messages, at a fraction of the parser's time
// per op. Nearly all of what travels is ops with a few inputs: those are
// decoded by hand into messages that earlier batches left behind, so that
// nothing is allocated. Whatever is unusual, in form or in size, goes through
// protobuf's own parser; the result is the same for all bytes, which its test
// checks.
// Thread-safety: none. Memory that is kept between batches is bounded.
#ifndef HOLDFAST_SERVER_TRANSPORT_BATCH_DECODER_H_
#define HOLDFAST_SERVER_TRANSPORT_BATCH_DECODER_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "google/protobuf/arena.h"
#include "proto/holdfast.pb.h"

namespace holdfast {

class BatchDecoder {
 public:
  BatchDecoder() = default;

  // Null when the bytes are no Batch. The message is valid until the next
  // call, the bytes need not be.
  const v1::Batch* Decode(const char* data, size_t size);
  // Ends the last message's life early; gives back memory that an unusually
  // large one took.
  void Release() { arena_.reset(); }

 private:
  bool DecodeFast(const char* data, size_t size);
  v1::Command* CommandAt(int index);

  v1::Batch batch_;                                  // of the fast way
  std::vector<std::unique_ptr<v1::Command>> spare_;  // not in batch_ now
  std::unique_ptr<google::protobuf::Arena> arena_;   // of the other
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_BATCH_DECODER_H_
