// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/arena.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace holdfast::client {
namespace {

// What is known to be present is known in units of this; smaller copies take
// their few faults as they come.
constexpr uint64_t kGranule = 64 << 10;
constexpr uint64_t kBulk = 256 << 10;
// Making pages present is the processor's work, so two threads halve it;
// copying is the memory's, and one thread saturates that.
constexpr uint64_t kTwoThreads = 8 << 20;

// Older kernels refuse the advice, which changes nothing but the speed.
void Populate(uint8_t* begin, uint64_t bytes) {
  constexpr uint64_t kPiece = 2 << 20;
  for (uint64_t done = 0; done < bytes; done += kPiece) {
    madvise(begin + done, std::min(kPiece, bytes - done), MADV_POPULATE_WRITE);
  }
}

}  // namespace

struct Arena::Segment {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
  std::mutex mutex;
  std::vector<bool> present ABSL_GUARDED_BY(mutex);  // per granule, once asked

  // Makes [offset, offset + size) present unless it was before. The daemon may
  // have given pages back since: then they come as faults.
  void MakePresent(uint64_t offset, uint64_t size) {
    const uint64_t begin = offset / kGranule;
    const uint64_t end = (offset + size + kGranule - 1) / kGranule;
    {
      std::lock_guard<std::mutex> lock(mutex);
      present.resize((bytes + kGranule - 1) / kGranule);
      bool missing = false;
      for (uint64_t i = begin; i < end; ++i) {
        missing |= !present[i];
        present[i] = true;
      }
      if (!missing) return;
    }
    uint8_t* first = data + begin * kGranule;
    const uint64_t all = std::min(end * kGranule, bytes) - begin * kGranule;
    static const bool several = std::thread::hardware_concurrency() > 1;
    if (all < kTwoThreads || !several) return Populate(first, all);
    const uint64_t half = all / 2 / kGranule * kGranule;
    std::thread other(Populate, first + half, all - half);
    Populate(first, half);
    other.join();
  }

  // Replaces the mapping by this process's own memory with the same bytes.
  // Without memory for that it stays.
  void Detach() {
    void* const own = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (own == MAP_FAILED) return;
    constexpr uint64_t kPage = 4096;
    static const uint8_t kZeros[kPage] = {};
    for (uint64_t at = 0; at < bytes; at += kPage) {
      const uint64_t n = std::min(kPage, bytes - at);
      // What was never written takes no memory here.
      if (std::memcmp(data + at, kZeros, n) == 0) continue;
      std::memcpy(static_cast<uint8_t*>(own) + at, data + at, n);
    }
    if (mremap(own, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, data) ==
        MAP_FAILED) {
      munmap(own, bytes);
    }
  }

  ~Segment() {
    if (data != nullptr) munmap(data, bytes);
  }
};

absl::StatusOr<std::shared_ptr<Arena::Segment>> Arena::Find(
    const wire::Place& place) {
  std::shared_ptr<Segment> segment;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (segments_.size() >= trim_at_) TrimLocked();
    std::shared_ptr<Segment>& known = segments_[place.segment()];
    if (!known) {
      Fd fd;
      uint64_t bytes = 0;
      absl::Status status = map_(place.segment(), &fd, &bytes);
      if (!status.ok()) {
        segments_.erase(place.segment());
        return status;
      }
      auto fresh = std::make_shared<Segment>();
      struct stat info;
      void* data = MAP_FAILED;
      // A mapping that reaches past the file's end would fault when touched.
      if (fstat(fd.get(), &info) == 0 &&
          static_cast<uint64_t>(info.st_size) >= bytes) {
        data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd.get(), 0);
      } else {
        errno = EINVAL;
      }
      if (data == MAP_FAILED) {
        const int error = errno;
        segments_.erase(place.segment());
        return absl::ResourceExhaustedError(absl::StrCat(
            "[memory] the session's segment must be mappable. Got ",
            strerror(error), " for segment ", place.segment(), " of ", bytes,
            " bytes."));
      }
      fresh->data = static_cast<uint8_t*>(data);
      fresh->bytes = bytes;
      known = std::move(fresh);
    }
    segment = known;
  }
  if (place.offset() > segment->bytes ||
      place.bytes() > segment->bytes - place.offset()) {
    return absl::InternalError(absl::StrCat(
        "[memory] a place must lie inside its segment. Got offset ",
        place.offset(), ", ", place.bytes(), " bytes in a segment of ",
        segment->bytes, "."));
  }
  return segment;
}

void Arena::Trim() {
  std::lock_guard<std::mutex> lock(mutex_);
  TrimLocked();
}

void Arena::TrimLocked() {
  for (auto it = segments_.begin(); it != segments_.end();) {
    // Nobody takes a share of it but under the lock.
    const auto here = it++;
    if (here->second.use_count() == 1) segments_.erase(here);
  }
  trim_at_ = std::max<size_t>(256, 2 * segments_.size());
}

void Arena::Detach() {
  std::lock_guard<std::mutex> lock(mutex_);
  TrimLocked();
  for (const auto& [id, segment] : segments_) segment->Detach();
  segments_.clear();
}

absl::StatusOr<MappedBytes> Arena::Locate(const wire::Place& place) {
  absl::StatusOr<std::shared_ptr<Segment>> segment = Find(place);
  if (!segment.ok()) return segment.status();
  uint8_t* data = (*segment)->data + place.offset();
  return MappedBytes{data, place.bytes(), *std::move(segment)};
}

absl::Status Arena::CopyTo(const wire::Place& place, const void* source,
                           uint64_t bytes, BlockMarks* marks) {
  absl::StatusOr<std::shared_ptr<Segment>> segment = Find(place);
  if (!segment.ok()) return segment.status();
  if (bytes > place.bytes()) {
    return absl::InternalError(
        absl::StrCat("[memory] a block must have the size asked for. Got ",
                     place.bytes(), " instead of ", bytes, " bytes."));
  }
  if (bytes >= kBulk) (*segment)->MakePresent(place.offset(), bytes);
  uint8_t* const target = (*segment)->data + place.offset();
  if (marks != nullptr) {
    CopyMarked(target, source, bytes, marks);
  } else {
    std::memcpy(target, source, bytes);
  }
  return absl::OkStatus();
}

}  // namespace holdfast::client
