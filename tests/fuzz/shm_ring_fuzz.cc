// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A ring whose other side writes what it likes: positions, lengths and bytes.
// Reader and writer stay within the ring and come to an end.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "proto/shm_ring.h"

namespace {

constexpr uint32_t kCapacity = 4096;

holdfast::RingMemory MakeRing() {
  int fd = -1;
  auto ring = holdfast::RingMemory::Create(kCapacity, &fd);
  if (!ring.ok()) __builtin_trap();
  close(fd);
  return *std::move(ring);
}

uint64_t TakeNumber(const uint8_t** bytes, size_t* size) {
  uint64_t number = 0;
  const size_t n = std::min(*size, sizeof number);
  std::memcpy(&number, *bytes, n);
  *bytes += n;
  *size -= n;
  return number;
}

}  // namespace

// The peer's tail, head, and the ring's first bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static auto* const ring = new holdfast::RingMemory(MakeRing());
  holdfast::RingHeader* header = ring->header();
  header->head = 0;
  header->tail = 0;
  holdfast::RingReader reader(ring);
  holdfast::RingWriter writer(ring);
  const uint64_t tail = TakeNumber(&bytes, &size);
  const uint64_t head = TakeNumber(&bytes, &size);
  std::memset(ring->data(), 0, kCapacity);
  std::memcpy(ring->data(), bytes, std::min<size_t>(size, kCapacity));

  header->tail = tail;
  std::string record;
  uint64_t records = 0;
  while (true) {
    const absl::StatusOr<bool> read = reader.TryRead(&record);
    if (!read.ok() || !*read) break;
    if (record.size() > holdfast::MaxRecord(kCapacity)) __builtin_trap();
    (void)reader.ProducerWaits();
    // The smallest record takes 8 bytes, and the tail stands still.
    if (++records > kCapacity / 8) __builtin_trap();
  }

  header->head = head;
  record.resize(holdfast::MaxRecord(kCapacity));
  for (int i = 0; i < 8; ++i) {
    if (!writer.TryWrite(record.data(), static_cast<uint32_t>(record.size()))) {
      break;
    }
    (void)writer.ConsumerWaits();
  }
  (void)writer.Broken();
  return 0;
}
