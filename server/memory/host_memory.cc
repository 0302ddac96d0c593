// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/memory/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/waits/no_wait.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace holdfast {
namespace {

// The system maps and frees one piece at a time with a lock that every thread
// of ours wants that takes or gives back memory.
constexpr size_t kPiece = size_t{16} << 20;

absl::Status SystemRefused(const char* call, int error) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the system refused memory: ", call, ": ", std::strerror(error)));
}

// Left to the rest of the machine.
constexpr size_t kHeadroomBytes = size_t{128} << 20;

// The control group that we are in, of version 2: "/a/b", or "" for the root.
std::string OwnGroup() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind("0::/", 0) != 0) continue;
    std::string path = line.substr(3);
    while (!path.empty() && path.back() == '/') path.pop_back();
    return path;
  }
  return "";
}

// What the machine, and the control group if it sets a limit, can still give.
// The kernel itself refuses nothing: it promises, then kills.
size_t AvailableBytes() {
  size_t available = std::numeric_limits<size_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key, unit; meminfo >> key;) {
    size_t kib = 0;
    meminfo >> kib;
    std::getline(meminfo, unit);
    if (key == "MemAvailable:") {
      available = kib * 1024;
      break;
    }
  }
  for (std::string group = OwnGroup();;) {
    const std::string folder = absl::StrCat("/sys/fs/cgroup", group);
    size_t limit = 0, current = 0;  // reading "max" fails: no limit
    if (std::ifstream(folder + "/memory.max") >> limit &&
        std::ifstream(folder + "/memory.current") >> current) {
      available = std::min(available, limit > current ? limit - current : 0);
    }
    if (group.empty()) return available;
    group.resize(group.rfind('/'));  // the limits of those above hold, too
  }
}

// Takes and maps all pages, so that no kernel faults for each, nor fails for
// want of one. False: errno says why.
bool Populate(char* base, size_t bytes) {
  constexpr size_t kPage = 4096;
  for (size_t at = 0; at < bytes; at += kPiece) {
    const size_t size = std::min(kPiece, bytes - at);
    if (madvise(base + at, size, MADV_POPULATE_WRITE) == 0) continue;
    if (errno != EINVAL) return false;
    // An older kernel. Nobody else has the memory yet.
    for (size_t page = at; page < at + size; page += kPage) {
      volatile char* byte = base + page;
      *byte = *byte;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<MemorySegment> HostMemory::AllocateSegment(size_t bytes) {
  MayWait("taking memory of the system");
  const size_t available = AvailableBytes();
  if (bytes + kHeadroomBytes > available) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the machine has ", available >> 20, " MiB left, ",
                     kHeadroomBytes >> 20, " MiB of them are reserved; ",
                     bytes >> 20, " MiB were asked for"));
  }
  MemorySegment segment;
  segment.bytes = bytes;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  if (shared_) {
    segment.fd =
        memfd_create("holdfast-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (segment.fd < 0) return SystemRefused("memfd_create", errno);
    const int error = posix_fallocate(segment.fd, 0, bytes);
    if (error != 0) {
      close(segment.fd);
      return SystemRefused("posix_fallocate", error);
    }
    // A client that shrank the file would make kernels fault.
    fcntl(segment.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    flags = MAP_SHARED;
  }
  segment.base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, segment.fd, 0);
  if (segment.base == MAP_FAILED) {
    const int error = errno;
    if (segment.fd >= 0) close(segment.fd);
    return SystemRefused("mmap", error);
  }
  if (!shared_) madvise(segment.base, bytes, MADV_HUGEPAGE);  // best effort
  if (!Populate(static_cast<char*>(segment.base), bytes)) {
    const absl::Status refused = SystemRefused("madvise", errno);
    FreeSegment(segment);
    return refused;
  }
  segment.id = next_id_++;
  return segment;
}

void HostMemory::FreeSegment(const MemorySegment& segment) {
  MayWait("giving memory back to the system");
  for (size_t at = 0; at < segment.bytes; at += kPiece) {
    const size_t size = std::min(kPiece, segment.bytes - at);
    if (segment.fd >= 0) {
      fallocate(segment.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(at), static_cast<off_t>(size));
    } else {
      madvise(static_cast<char*>(segment.base) + at, size, MADV_DONTNEED);
    }
  }
  munmap(segment.base, segment.bytes);
  if (segment.fd >= 0) close(segment.fd);
}

}  // namespace holdfast
