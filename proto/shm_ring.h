// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ShmRing: a single-producer single-consumer ring of records in shared memory,
// part of the protocol: the submission ring carries Batch messages, the
// completion ring Event messages.
//
// Byte map of the memory (a sealed memfd made by the server):
//      0  u64 magic "HFRING01"      8  u32 capacity (bytes, power of two)
//     12  u32 consumer_barrier: 1 if the consumer issues a membarrier(2)
//         (GLOBAL_EXPEDITED) between setting consumer_waiting and its last
//         look at the tail; a producer that has registered for those may then
//         look at consumer_waiting without a fence after each record (the
//         fence costs several times what the record does)
//     64  u64 tail: bytes written so far      (producer writes, release)
//    128  u64 head: bytes consumed so far     (consumer writes, release)
//    192  u32 consumer_waiting: 1 while the consumer sleeps; the producer
//         that sees it after publishing rings the consumer's doorbell
//    256  u32 producer_waiting: likewise for a producer that waits for space
//   4096  data, capacity bytes
// Record: u32 length, payload, zero padding to a multiple of 8. A record never
// wraps: length 0xFFFFFFFF means "skip to the start of the data".
//
// Doorbells are descriptors, passed beside the ring: the server's an eventfd
// that the client writes 1 to, the client's one that becomes readable, eight
// bytes a ring (a socket; of older servers an eventfd). Neither side trusts the
// other: the reader copies a record out before looking at it, checks lengths
// against the published tail, and treats any inconsistency as the peer's
// protocol error.
// Thread-safety: one producer and one consumer thread (or a lock) per ring.
#ifndef HOLDFAST_PROTO_SHM_RING_H_
#define HOLDFAST_PROTO_SHM_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace holdfast {

inline constexpr uint32_t kRingDataOffset = 4096;
inline constexpr uint64_t kRingMagic = 0x3130474e49524648;  // "HFRING01"

struct alignas(64) RingHeader {
  uint64_t magic;
  uint32_t capacity;
  std::atomic<uint32_t> consumer_barrier;
  alignas(64) std::atomic<uint64_t> tail;
  alignas(64) std::atomic<uint64_t> head;
  alignas(64) std::atomic<uint32_t> consumer_waiting;
  alignas(64) std::atomic<uint32_t> producer_waiting;
};
static_assert(sizeof(RingHeader) <= kRingDataOffset);

// A mapping of a ring's memory. Move-only; unmaps on destruction.
class RingMemory {
 public:
  RingMemory() = default;
  ~RingMemory();
  RingMemory(RingMemory&& other) noexcept;
  RingMemory& operator=(RingMemory&& other) noexcept;

  // Creates a sealed memfd (its size is fixed) and maps it. `fd`
  // receives the descriptor, owned by the caller.
  static absl::StatusOr<RingMemory> Create(uint32_t capacity, int* fd);
  // Maps a ring got from the peer; checks magic, capacity and file size.
  static absl::StatusOr<RingMemory> Map(int fd);

  RingHeader* header() const { return header_; }
  uint8_t* data() const {
    return reinterpret_cast<uint8_t*>(header_) + kRingDataOffset;
  }
  uint32_t capacity() const { return capacity_; }  // our copy, not the peer's

 private:
  RingHeader* header_ = nullptr;
  uint32_t capacity_ = 0;
};

// Largest record a ring takes: a quarter of its capacity.
inline constexpr uint32_t MaxRecord(uint32_t capacity) { return capacity / 4; }

class RingWriter {
 public:
  explicit RingWriter(RingMemory* memory);
  // Appends one record and publishes it. False: no space now. REQUIRES:
  // size <= MaxRecord(capacity).
  bool TryWrite(const void* payload, uint32_t size);
  // True iff the consumer asked to be woken; clears the request. Call after
  // TryWrite; ring the doorbell when true.
  bool ConsumerWaits();
  // Asks for a doorbell when space is freed; false if there is space for
  // `size` by now.
  bool ArmForSpace(uint32_t size);
  bool HasSpace(uint32_t size);  // TryWrite of so much would succeed
  bool Empty() const;            // the consumer has taken everything
  // The consumer's position is impossible: nothing will ever fit again.
  bool Broken() const;

 private:
  bool Fits(uint64_t bytes) const;

  RingMemory* memory_;
  uint64_t tail_ = 0;         // ours
  uint64_t cached_head_ = 0;  // last seen
  bool registered_ = false;   // for the consumer's barriers
};

class RingReader {
 public:
  explicit RingReader(RingMemory* memory);
  // True when a record is waiting (one cache line read).
  bool Ready() const;
  // Of the records that wait, padding included.
  size_t WaitingBytes() const;
  // Copies the next record into `record` (its capacity is reused). Returns
  // false when the ring is empty; an error when the producer broke the format.
  absl::StatusOr<bool> TryRead(std::string* record);
  // True iff the producer waits for space that should be announced now;
  // clears the request. Call after every TryRead that returned true.
  bool ProducerWaits();
  // Asks to be woken by the next record; false if one is there already. The
  // request stands until a record is read; arming again is free till then.
  bool Arm();
  // Withdraws the request. TryRead does so when it finds a record, so there is
  // rarely a need.
  void Disarm();

 private:
  absl::Status Broken(absl::string_view what, uint64_t got) const;

  RingMemory* memory_;
  uint64_t head_ = 0;         // ours
  uint64_t cached_tail_ = 0;  // last seen
  uint64_t fenced_head_ = 0;  // at the last ordered look at producer_waiting
  bool barrier_ = false;      // membarrier works here
  bool armed_ = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_PROTO_SHM_RING_H_
