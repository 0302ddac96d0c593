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
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "google/protobuf/arena.h"
#include "proto/holdfast.pb.h"
#include "server/memory/heap_meter.h"

namespace holdfast {

class BatchDecoder {
 public:
  BatchDecoder() = default;

  // More is refused before anything is made of it: a few bytes would become
  // many times as much memory. Our clients' batches have some hundreds.
  static constexpr int kMaxCommands = 1 << 16;
  // Messages, unknown fields and eights of packed numbers inside of a batch.
  static constexpr int64_t kMaxParts = 1 << 19;

  // Null when the bytes are no Batch, or one with too much in it. The message
  // is valid until the next call, the bytes need not be.
  const v1::Batch* Decode(const char* data, size_t size);
  // Ends the last message's life early; gives back memory that an unusually
  // large one took.
  void Release();
  // Whose the memory is that messages take. Before the first Decode.
  void set_account(std::shared_ptr<MemoryAccount> account) {
    charge_.set_account(std::move(account));
  }

 private:
  const v1::Batch* DecodeCounted(const char* data, size_t size);
  bool DecodeFast(const char* data, size_t size);
  v1::Command* CommandAt(int index);

  v1::Batch batch_;                                  // of the fast way
  std::vector<std::unique_ptr<v1::Command>> spare_;  // not in batch_ now
  std::unique_ptr<google::protobuf::Arena> arena_;   // of the other
  int64_t held_ = 0;                                 // by all of them
  HeapCharge charge_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_BATCH_DECODER_H_
