// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CopyStreams: two streams beside a session's stream, on which large copies
// from and to the host go while kernels run. Made when they are first needed: a
// session that copies little has none. What is small stays on the session's own
// stream, where it costs no events.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_SERVER_EXEC_COPY_STREAMS_H_
#define HOLDFAST_SERVER_EXEC_COPY_STREAMS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace holdfast {

class CopyStreams {
 public:
  // Copies of so many bytes take longer than what keeps two streams in order.
  static constexpr size_t kLeastBytes = size_t{128} << 10;

  // `stream` is the session's. The device must outlive this.
  CopyStreams(Device* device, StreamId stream, int priority)
      : device_(device), stream_(stream), priority_(priority) {}
  // Waits for copies.
  ~CopyStreams();
  CopyStreams(const CopyStreams&) = delete;
  CopyStreams& operator=(const CopyStreams&) = delete;

  // Where a copy of that size goes: one of the streams here, or the session's.
  absl::StatusOr<StreamId> ForUpload(size_t bytes);
  absl::StatusOr<StreamId> ForDownload(size_t bytes);

  // The session's stream goes on after what `copies` has now.
  absl::Status Before(StreamId copies);
  // `copies` begins after what the session's stream has now.
  absl::Status After(StreamId copies);

  // See Device::TimeWork; of streams that are made later, too.
  void TimeWork(std::optional<uint64_t> tag);
  std::optional<StreamId> up() const { return up_; }
  std::optional<StreamId> down() const { return down_; }

 private:
  absl::StatusOr<StreamId> Find(std::optional<StreamId>* stream, size_t bytes);

  Device* const device_;
  const StreamId stream_;
  const int priority_;
  std::optional<StreamId> up_, down_;
  std::optional<uint64_t> tag_;  // of work that is timed
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_COPY_STREAMS_H_
