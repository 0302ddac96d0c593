// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/arena.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace holdfast::client {
namespace {

constexpr uint64_t kTwoThreads = 8 << 20;
constexpr uint64_t kPopulate = 256 << 10;

// A fault per page costs more than copying the page; one call for all costs
// little. Older kernels refuse it, which changes nothing but the speed.
void Populate(uint8_t* target, uint64_t bytes) {
  static const uint64_t page = sysconf(_SC_PAGESIZE);
  const uint64_t begin = reinterpret_cast<uint64_t>(target) & ~(page - 1);
  const uint64_t end =
      (reinterpret_cast<uint64_t>(target) + bytes + page - 1) & ~(page - 1);
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
}

void PopulateAndCopy(uint8_t* target, const uint8_t* source, uint64_t bytes) {
  // In pieces, so that the copy finds the page tables and caches warm.
  constexpr uint64_t kPiece = 2 << 20;
  while (bytes > 0) {
    const uint64_t piece = bytes < kPiece ? bytes : kPiece;
    if (piece >= kPopulate) Populate(target, piece);
    std::memcpy(target, source, piece);
    target += piece;
    source += piece;
    bytes -= piece;
  }
}

}  // namespace

struct Arena::Segment {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;

  ~Segment() {
    if (data != nullptr) munmap(data, bytes);
  }
};

absl::StatusOr<MappedBytes> Arena::Locate(const wire::Place& place) {
  std::shared_ptr<Segment> segment;
  {
    std::lock_guard<std::mutex> lock(mutex_);
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
  return MappedBytes{segment->data + place.offset(), place.bytes(),
                     std::move(segment)};
}

void CopyToShared(uint8_t* target, const void* source, uint64_t bytes) {
  const uint8_t* from = static_cast<const uint8_t*>(source);
  static const bool several = std::thread::hardware_concurrency() > 1;
  if (bytes < kTwoThreads || !several) {
    PopulateAndCopy(target, from, bytes);
    return;
  }
  const uint64_t half = (bytes / 2) & ~uint64_t{4095};
  std::thread other(PopulateAndCopy, target + half, from + half, bytes - half);
  PopulateAndCopy(target, from, half);
  other.join();
}

}  // namespace holdfast::client
