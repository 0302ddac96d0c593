// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/shm_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

constexpr uint32_t kSkip = 0xFFFFFFFF;
constexpr uint32_t kMinCapacity = 4096;
constexpr uint32_t kMaxCapacity = 1u << 30;

bool IsValidCapacity(uint64_t capacity) {
  return capacity >= kMinCapacity && capacity <= kMaxCapacity &&
         (capacity & (capacity - 1)) == 0;
}

constexpr uint64_t RecordBytes(uint64_t size) { return (size + 4 + 7) & ~7ull; }

absl::Status Errno(absl::string_view what) {
  const int error = errno;
  const std::string message =
      absl::StrCat("[ring] ", what, ": ", strerror(error), ".");
  if (error == ENOMEM || error == ENOSPC || error == EMFILE) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::InternalError(message);
}

absl::StatusOr<RingHeader*> MapPages(int fd, uint64_t bytes) {
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return Errno("mmap of a ring");
  return static_cast<RingHeader*>(memory);
}

void FullFence() {
#ifdef __SANITIZE_THREAD__
  // ThreadSanitizer knows no fences; a locked instruction is one.
  static std::atomic<int> word{0};
  word.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

bool Membarrier(int command) {
  return syscall(__NR_membarrier, command, 0, 0) == 0;
}

bool BarrierAvailable() {
  static const bool available = [] {
    const long commands =  // NOLINT: the kernel's type
        syscall(__NR_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return commands > 0 && (commands & MEMBARRIER_CMD_GLOBAL_EXPEDITED) != 0;
  }();
  return available;
}

bool RegisterForBarriers() {
  static const bool registered =
      BarrierAvailable() &&
      Membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
  return registered;
}

}  // namespace

RingMemory::~RingMemory() {
  if (header_ != nullptr) {
    munmap(header_, uint64_t{kRingDataOffset} + capacity_);
  }
}

RingMemory::RingMemory(RingMemory&& other) noexcept
    : header_(std::exchange(other.header_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)) {}

RingMemory& RingMemory::operator=(RingMemory&& other) noexcept {
  std::swap(header_, other.header_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

absl::StatusOr<RingMemory> RingMemory::Create(uint32_t capacity, int* fd) {
  if (!IsValidCapacity(capacity)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[ring] the capacity must be a power of two in [", kMinCapacity, ", ",
        kMaxCapacity, "]. Got ", capacity, "."));
  }
  const uint64_t bytes = uint64_t{kRingDataOffset} + capacity;
  const int file =
      memfd_create("holdfast-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return Errno("memfd_create");
  // Pages come as they are written, so that a thousand idle sessions cost
  // little: a memfd has no quota, whose end would be a SIGBUS.
  absl::Status status;
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    status = Errno("sizing a ring's memory");
  } else if (fcntl(file, F_ADD_SEALS,
                   F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    status = Errno("sealing a ring's memory");
  }
  absl::StatusOr<RingHeader*> header =
      status.ok() ? MapPages(file, bytes) : absl::StatusOr<RingHeader*>(status);
  if (!header.ok()) {
    close(file);
    return header.status();
  }
  RingMemory memory;
  memory.header_ = new (*header) RingHeader{};
  memory.capacity_ = capacity;
  memory.header_->magic = kRingMagic;
  memory.header_->capacity = capacity;
  *fd = file;
  return memory;
}

absl::StatusOr<RingMemory> RingMemory::Map(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return Errno("fstat of a ring");
  if (info.st_size < int64_t{kRingDataOffset} + kMinCapacity ||
      info.st_size > int64_t{kRingDataOffset} + kMaxCapacity) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[ring] the file has an impossible size. Got ", info.st_size, "."));
  }
  // Unsealed memory could be cut short under the mapping.
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return absl::InvalidArgumentError(
        "[ring] the memory must be sealed against shrinking.");
  }
  const uint32_t capacity =
      static_cast<uint32_t>(info.st_size - kRingDataOffset);
  absl::StatusOr<RingHeader*> header = MapPages(fd, info.st_size);
  if (!header.ok()) return header.status();
  RingMemory memory;
  memory.header_ = *header;
  memory.capacity_ = capacity;
  const uint64_t magic = memory.header_->magic;
  const uint32_t claimed = memory.header_->capacity;
  if (magic != kRingMagic || claimed != capacity ||
      !IsValidCapacity(capacity)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[ring] the header must hold the magic and the file's capacity. Got "
        "magic=",
        absl::Hex(magic), ", capacity=", claimed, ", file=", capacity, "."));
  }
  return memory;
}

// ---- writer

RingWriter::RingWriter(RingMemory* memory)
    : memory_(memory),
      tail_(memory->header()->tail.load(std::memory_order_relaxed)),
      cached_head_(memory->header()->head.load(std::memory_order_acquire)) {
  // A ring in use has aligned positions; another value is the peer's doing.
  tail_ &= ~7ull;
  registered_ = RegisterForBarriers();
}

bool RingWriter::Fits(uint64_t bytes) const {
  // A head ahead of the tail makes `used` huge: no space, ever.
  const uint64_t used = tail_ - cached_head_;
  return used <= memory_->capacity() && bytes <= memory_->capacity() - used;
}

bool RingWriter::HasSpace(uint32_t size) {
  const uint64_t to_end =
      memory_->capacity() - (tail_ & (memory_->capacity() - 1));
  uint64_t bytes = RecordBytes(size);
  if (bytes > to_end) bytes += to_end;
  if (Fits(bytes)) return true;
  cached_head_ = memory_->header()->head.load(std::memory_order_acquire);
  return Fits(bytes);
}

bool RingWriter::TryWrite(const void* payload, uint32_t size) {
  if (!HasSpace(size)) return false;
  const uint32_t mask = memory_->capacity() - 1;
  const uint64_t bytes = RecordBytes(size);
  uint8_t* data = memory_->data();
  const uint64_t to_end = memory_->capacity() - (tail_ & mask);
  if (bytes > to_end) {
    std::memcpy(data + (tail_ & mask), &kSkip, sizeof(kSkip));
    tail_ += to_end;
  }
  uint8_t* record = data + (tail_ & mask);
  // The padding first: the payload then covers all but its last bytes.
  std::memset(record + bytes - 8, 0, 8);
  std::memcpy(record, &size, sizeof(size));
  std::memcpy(record + 4, payload, size);
  tail_ += bytes;
  memory_->header()->tail.store(tail_, std::memory_order_release);
  return true;
}

bool RingWriter::ConsumerWaits() {
  RingHeader* header = memory_->header();
  // Our tail must be visible before we look at the flag (Arm does the
  // reverse): the consumer's barrier sees to it, or we do.
  if (!registered_ ||
      header->consumer_barrier.load(std::memory_order_relaxed) == 0) {
    FullFence();
  } else {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  std::atomic<uint32_t>& waiting = header->consumer_waiting;
  if (waiting.load(std::memory_order_relaxed) == 0) return false;
  return waiting.exchange(0, std::memory_order_relaxed) != 0;
}

bool RingWriter::ArmForSpace(uint32_t size) {
  std::atomic<uint32_t>& waiting = memory_->header()->producer_waiting;
  waiting.store(1, std::memory_order_relaxed);
  FullFence();
  if (!HasSpace(size)) return true;
  waiting.store(0, std::memory_order_relaxed);
  return false;
}

bool RingWriter::Empty() const {
  return memory_->header()->head.load(std::memory_order_acquire) == tail_;
}

bool RingWriter::Broken() const {
  const uint64_t head = memory_->header()->head.load(std::memory_order_acquire);
  return tail_ - head > memory_->capacity();
}

// ---- reader

RingReader::RingReader(RingMemory* memory)
    : memory_(memory),
      head_(memory->header()->head.load(std::memory_order_relaxed) & ~7ull),
      cached_tail_(head_),
      fenced_head_(head_),
      barrier_(BarrierAvailable()) {
  memory->header()->consumer_barrier.store(barrier_ ? 1 : 0,
                                           std::memory_order_relaxed);
}

bool RingReader::Ready() const {
  return head_ != cached_tail_ ||
         memory_->header()->tail.load(std::memory_order_acquire) != head_;
}

size_t RingReader::WaitingBytes() const {
  const uint64_t waiting =
      memory_->header()->tail.load(std::memory_order_acquire) - head_;
  // The producer may write any tail; TryRead tells it so.
  return std::min<uint64_t>(waiting, memory_->capacity());
}

absl::Status RingReader::Broken(absl::string_view what, uint64_t got) const {
  return absl::InvalidArgumentError(
      absl::StrCat("[ring] the producer broke the ring's format: ", what,
                   ". Got ", got, " at head=", head_, ", tail=", cached_tail_,
                   ", capacity=", memory_->capacity(), "."));
}

absl::StatusOr<bool> RingReader::TryRead(std::string* record) {
  const uint32_t capacity = memory_->capacity();
  const uint32_t mask = capacity - 1;
  const uint8_t* data = memory_->data();
  // Twice at most: a skip is always followed by a record.
  for (int skips = 0; skips < 2; ++skips) {
    if (head_ == cached_tail_) {
      const uint64_t tail =
          memory_->header()->tail.load(std::memory_order_acquire);
      if (tail == head_) {
        if (skips > 0) return Broken("a skip must precede a record", tail);
        return false;
      }
      if (tail - head_ > capacity || (tail & 7) != 0) {
        return Broken("the tail must be aligned and within the capacity", tail);
      }
      cached_tail_ = tail;
    }
    const uint64_t available = cached_tail_ - head_;
    const uint64_t position = head_ & mask;
    const uint64_t to_end = capacity - position;
    // Read once: the producer may change it while we look.
    uint32_t length = __atomic_load_n(
        reinterpret_cast<const uint32_t*>(data + position), __ATOMIC_RELAXED);
    if (length == kSkip) {
      if (to_end > available) return Broken("a skip passes the tail", to_end);
      head_ += to_end;
      continue;
    }
    if (length > MaxRecord(capacity)) {
      return Broken("a record must not exceed a quarter of the ring", length);
    }
    const uint64_t bytes = RecordBytes(length);
    if (bytes > available) return Broken("a record passes the tail", length);
    if (bytes > to_end) return Broken("a record must not wrap", length);
    record->assign(reinterpret_cast<const char*>(data + position + 4), length);
    head_ += bytes;
    memory_->header()->head.store(head_, std::memory_order_release);
    Disarm();
    return true;
  }
  return Broken("two skips follow each other", kSkip);
}

bool RingReader::ProducerWaits() {
  std::atomic<uint32_t>& waiting = memory_->header()->producer_waiting;
  // A producer that waits has about half a ring of records before us, so a
  // request that a plain look misses is found by the ordered look at the end
  // of them; for fewer records there cannot be one.
  const bool last = head_ == cached_tail_;
  if (last && head_ - fenced_head_ >= memory_->capacity() / 4) {
    fenced_head_ = head_;
    FullFence();
  }
  if (waiting.load(std::memory_order_relaxed) == 0) return false;
  // Half a ring per wake-up, not a wake-up per record.
  if (!last && cached_tail_ - head_ > memory_->capacity() / 2) return false;
  return waiting.exchange(0, std::memory_order_relaxed) != 0;
}

bool RingReader::Arm() {
  std::atomic<uint32_t>& waiting = memory_->header()->consumer_waiting;
  // Still armed from before, and nobody has answered: the barrier of then
  // holds, so that a server with many idle rings pays for none of them.
  if (armed_ && waiting.load(std::memory_order_relaxed) == 1) return !Ready();
  armed_ = true;
  waiting.store(1, std::memory_order_relaxed);
  FullFence();
  // Flushes the producer's processor: after this, either we see its record or
  // it sees our request.
  if (barrier_ && !Ready()) Membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  return !Ready();
}

void RingReader::Disarm() {
  if (!armed_) return;
  armed_ = false;
  memory_->header()->consumer_waiting.store(0, std::memory_order_relaxed);
}

}  // namespace holdfast
