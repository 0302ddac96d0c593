// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// State files: tensors on disk, written once and whole.
//
//   "HFSTATE1"                     8 bytes
//   blobs                          each from a multiple of 4096
//   Header                         server/state.proto
//   header's offset, bytes         u64 each
//   header's CRC-32                u32
//   "HFSE"                         4 bytes
//
// Integers are little-endian, checksums zlib's CRC-32. A file without its end
// is one whose writer was cut off; a bad checksum is damage. Both are DataLoss.
// Thread-safety: one thread at a time. Calls block on the disk.
#ifndef HOLDFAST_SERVER_STATE_STATE_FILE_H_
#define HOLDFAST_SERVER_STATE_STATE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/state.pb.h"

namespace holdfast {

// "what of the file failed: the system's reason".
absl::Status DiskError(absl::string_view what, const std::string& path,
                       int error);

class StateFileWriter {
 public:
  // Blobs are read and written in pieces of at most so many bytes.
  static constexpr size_t kPiece = size_t{4} << 20;
  // Brings bytes [offset, offset + size) of what a blob is made of: `*data`
  // points at them until the next call.
  using Source = std::function<absl::Status(uint64_t offset, size_t size,
                                            const char** data)>;

  // Makes `path`, or empties it.
  static absl::StatusOr<StateFileWriter> Create(const std::string& path);
  StateFileWriter(StateFileWriter&& other) noexcept;
  StateFileWriter& operator=(StateFileWriter&&) = delete;
  ~StateFileWriter();  // closes; what is not finished is no state file

  absl::Status AddBlob(uint64_t bytes, const Source& source);
  // Writes the rest; `header` without blobs. The file is on the disk then, its
  // name may not be.
  absl::Status Finish(state::Header header);

 private:
  StateFileWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status Write(const char* data, size_t size);

  std::string path_;
  int fd_;
  uint64_t size_ = 0;
  state::Header header_;
};

class StateFileReader {
 public:
  // Checks all but the blobs.
  static absl::StatusOr<StateFileReader> Open(const std::string& path);
  StateFileReader(StateFileReader&& other) noexcept;
  StateFileReader& operator=(StateFileReader&&) = delete;
  ~StateFileReader();

  const state::Header& header() const { return header_; }
  // Gives a blob's bytes to `sink`, in order, then checks them: what the sink
  // got is no good if this fails. `buffer` null: pieces of memory of ours; else
  // there, at once.
  absl::Status ReadBlob(
      int index, char* buffer,
      const std::function<absl::Status(uint64_t offset, absl::string_view)>&
          sink) const;

 private:
  StateFileReader(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status ReadHeader();
  absl::Status Read(uint64_t offset, char* data, size_t size) const;

  std::string path_;
  int fd_;
  state::Header header_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_STATE_STATE_FILE_H_
