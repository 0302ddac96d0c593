// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arena: the client's view of its session's memory segments. Each is mapped
// once, when first named, and stays mapped while anything looks at it.
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
  // in bulk, once.
  absl::Status CopyTo(const wire::Place& place, const void* source,
                      uint64_t bytes);

 private:
  struct Segment;

  absl::StatusOr<std::shared_ptr<Segment>> Find(const wire::Place& place);

  const MapSegment map_;
  std::mutex mutex_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Segment>> segments_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_ARENA_H_
