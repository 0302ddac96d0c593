// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arena: the client's view of its session's memory segments. Each is mapped
// when first named, and stays mapped at least while anything looks at it.
// Thread-safety: all methods from any thread.
#ifndef HOLDFAST_CLIENT_ARENA_H_
#define HOLDFAST_CLIENT_ARENA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "client/local_socket.h"

namespace holdfast::client {

class Arena {
 public:
  // Asks the daemon for a segment's descriptor and size.
  using MapSegment =
      std::function<absl::Status(uint64_t id, Fd* fd, uint64_t* bytes)>;
  explicit Arena(MapSegment map) : map_(std::move(map)) {}

  absl::StatusOr<MappedBytes> Locate(const wire::Place& place);
  // memcpy to the beginning of a place, as fast as memory allows: a page fault
  // costs several times what copying the page does, so pages are made present
  // in bulk, once. `marks`: null, or gets those of the copy.
  absl::Status CopyTo(const wire::Place& place, const void* source,
                      uint64_t bytes, BlockMarks* marks);

  // Unmaps what nothing looks at; it is mapped again when it is named.
  void Trim();
  // The daemon is to take the memory back: whatever looks at some of it keeps
  // the elements of now, in memory of this process, at the same addresses.
  // Nobody may be writing there.
  void Detach();

 private:
  struct Segment;

  absl::StatusOr<std::shared_ptr<Segment>> Find(const wire::Place& place);
  void TrimLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const MapSegment map_;
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Segment>> segments_
      ABSL_GUARDED_BY(mutex_);
  // The daemon gives segments back without a word, and a process may have some
  // 65,000 mappings: with so many they are looked through.
  size_t trim_at_ ABSL_GUARDED_BY(mutex_) = 256;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_ARENA_H_
