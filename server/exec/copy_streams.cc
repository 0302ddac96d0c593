// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/copy_streams.h"

namespace holdfast {

CopyStreams::~CopyStreams() {
  for (const std::optional<StreamId>& stream : {up_, down_}) {
    if (stream) device_->DestroyStream(*stream);
  }
}

absl::StatusOr<StreamId> CopyStreams::Find(std::optional<StreamId>* stream,
                                           size_t bytes) {
  if (bytes < kLeastBytes) return stream_;
  if (!*stream) {
    absl::StatusOr<StreamId> made = device_->CreateStream(priority_);
    if (!made.ok()) return made.status();
    *stream = *made;
    if (tag_) device_->TimeWork(*made, tag_);
  }
  return **stream;
}

absl::StatusOr<StreamId> CopyStreams::ForUpload(size_t bytes) {
  return Find(&up_, bytes);
}

absl::StatusOr<StreamId> CopyStreams::ForDownload(size_t bytes) {
  return Find(&down_, bytes);
}

absl::Status CopyStreams::Before(StreamId copies) {
  return copies == stream_ ? absl::OkStatus() : device_->Order(copies, stream_);
}

absl::Status CopyStreams::After(StreamId copies) {
  return copies == stream_ ? absl::OkStatus() : device_->Order(stream_, copies);
}

void CopyStreams::TimeWork(std::optional<uint64_t> tag) {
  tag_ = tag;
  for (const std::optional<StreamId>& stream : {up_, down_}) {
    if (stream) device_->TimeWork(*stream, tag);
  }
}

}  // namespace holdfast
