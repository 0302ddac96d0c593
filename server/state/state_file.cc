// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/state/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/state/write_steps.h"

namespace holdfast {
namespace {

constexpr char kBegin[8] = {'H', 'F', 'S', 'T', 'A', 'T', 'E', '1'};
constexpr char kEnd[4] = {'H', 'F', 'S', 'E'};
constexpr uint64_t kAlignment = 4096;
constexpr uint64_t kMaxHeader = uint64_t{1} << 30;

// The file's last bytes. On x86-64 and AArch64 the struct is the bytes.
struct Trailer {
  uint64_t header_offset = 0;
  uint64_t header_bytes = 0;
  uint32_t header_crc = 0;
  char end[4] = {};
};
static_assert(sizeof(Trailer) == 24);

uint32_t Crc(uint32_t crc, const char* data, size_t size) {
  return static_cast<uint32_t>(
      crc32_z(crc, reinterpret_cast<const Bytef*>(data), size));
}

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("[state] ", path, " is damaged: ", what));
}

}  // namespace

absl::Status DiskError(absl::string_view what, const std::string& path,
                       int error) {
  return absl::FailedPreconditionError(absl::StrCat(
      "[state] ", path, " cannot be ", what, ": ", std::strerror(error),
      error == ENOSPC || error == EDQUOT
          ? ". Free some room there, or give --state_dir a larger disk"
      : error == EACCES || error == EROFS || error == EPERM
          ? ". The daemon's user must be able to write there"
          : ""));
}

// ---- writing

absl::StatusOr<StateFileWriter> StateFileWriter::Create(
    const std::string& path) {
  WriteStep("create");
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return DiskError("made", path, errno);
  StateFileWriter writer(path, fd);
  absl::Status status = writer.Write(kBegin, sizeof(kBegin));
  if (!status.ok()) return status;
  return writer;
}

StateFileWriter::StateFileWriter(StateFileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      header_(std::move(other.header_)) {}

StateFileWriter::~StateFileWriter() {
  if (fd_ >= 0) close(fd_);
}

absl::Status StateFileWriter::Write(const char* data, size_t size) {
  WriteStep("write");
  while (size > 0) {
    const ssize_t n = write(fd_, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DiskError("written", path_, errno);
    data += n;
    size -= n;
    size_ += n;
  }
  return absl::OkStatus();
}

absl::Status StateFileWriter::AddBlob(uint64_t bytes, const Source& source) {
  static const char kZeros[kAlignment] = {};
  const uint64_t gap = (kAlignment - size_ % kAlignment) % kAlignment;
  absl::Status status = Write(kZeros, gap);
  if (!status.ok()) return status;
  state::Blob* blob = header_.add_blobs();
  blob->set_offset(size_);
  blob->set_bytes(bytes);
  uint32_t crc = Crc(0, nullptr, 0);
  for (uint64_t at = 0; at < bytes;) {
    const size_t size = std::min<uint64_t>(kPiece, bytes - at);
    const char* data = nullptr;
    status = source(at, size, &data);
    if (status.ok()) status = Write(data, size);
    if (!status.ok()) return status;
    crc = Crc(crc, data, size);
    at += size;
  }
  blob->set_crc32(crc);
  return absl::OkStatus();
}

absl::Status StateFileWriter::Finish(state::Header header) {
  *header.mutable_blobs() = std::move(*header_.mutable_blobs());
  const std::string bytes = header.SerializeAsString();
  Trailer trailer;
  trailer.header_offset = size_;
  trailer.header_bytes = bytes.size();
  trailer.header_crc = Crc(Crc(0, nullptr, 0), bytes.data(), bytes.size());
  std::memcpy(trailer.end, kEnd, sizeof(kEnd));
  absl::Status status = Write(bytes.data(), bytes.size());
  if (status.ok()) {
    status = Write(reinterpret_cast<const char*>(&trailer), sizeof(trailer));
  }
  if (!status.ok()) return status;
  WriteStep("sync");
  if (fsync(fd_) != 0) return DiskError("written", path_, errno);
  // What a full disk of a network file system says only now.
  if (close(std::exchange(fd_, -1)) != 0) {
    return DiskError("written", path_, errno);
  }
  return absl::OkStatus();
}

// ---- reading

absl::StatusOr<StateFileReader> StateFileReader::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return DiskError("read", path, errno);
  StateFileReader reader(path, fd);
  absl::Status status = reader.ReadHeader();
  if (!status.ok()) return status;
  return reader;
}

StateFileReader::StateFileReader(StateFileReader&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      header_(std::move(other.header_)) {}

StateFileReader::~StateFileReader() {
  if (fd_ >= 0) close(fd_);
}

absl::Status StateFileReader::Read(uint64_t offset, char* data,
                                   size_t size) const {
  while (size > 0) {
    const ssize_t n = pread(fd_, data, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return DiskError("read", path_, errno);
    if (n == 0) return Damaged(path_, "it is too short");
    data += n;
    offset += n;
    size -= n;
  }
  return absl::OkStatus();
}

absl::Status StateFileReader::ReadHeader() {
  struct stat info = {};
  if (fstat(fd_, &info) != 0) return DiskError("read", path_, errno);
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  char begin[sizeof(kBegin)];
  Trailer trailer;
  if (size < sizeof(kBegin) + sizeof(trailer)) {
    return Damaged(path_, "it is too short");
  }
  absl::Status status = Read(0, begin, sizeof(begin));
  if (status.ok()) {
    status = Read(size - sizeof(trailer), reinterpret_cast<char*>(&trailer),
                  sizeof(trailer));
  }
  if (!status.ok()) return status;
  if (std::memcmp(begin, kBegin, sizeof(kBegin)) != 0) {
    return Damaged(path_, "it is no state file of this version");
  }
  if (std::memcmp(trailer.end, kEnd, sizeof(kEnd)) != 0) {
    return Damaged(path_, "its end is missing");
  }
  const uint64_t room = size - sizeof(trailer);
  if (trailer.header_bytes > kMaxHeader || trailer.header_bytes > room ||
      trailer.header_offset != room - trailer.header_bytes) {
    return Damaged(path_, "its end does not fit its size");
  }
  std::string bytes(trailer.header_bytes, '\0');
  status = Read(trailer.header_offset, bytes.data(), bytes.size());
  if (!status.ok()) return status;
  if (Crc(Crc(0, nullptr, 0), bytes.data(), bytes.size()) !=
          trailer.header_crc ||
      !header_.ParseFromString(bytes)) {
    return Damaged(path_, "the checksum of its header is wrong");
  }
  for (const state::Blob& blob : header_.blobs()) {
    if (blob.bytes() > trailer.header_offset ||
        blob.offset() > trailer.header_offset - blob.bytes()) {
      return Damaged(path_, "a tensor lies outside of it");
    }
  }
  return absl::OkStatus();
}

absl::Status StateFileReader::ReadBlob(
    int index, char* buffer,
    const std::function<absl::Status(uint64_t offset, absl::string_view)>& sink)
    const {
  const state::Blob& blob = header_.blobs(index);
  std::vector<char> own;
  if (buffer == nullptr) {
    own.resize(std::min<uint64_t>(StateFileWriter::kPiece, blob.bytes()));
  }
  uint32_t crc = Crc(0, nullptr, 0);
  for (uint64_t at = 0; at < blob.bytes();) {
    const size_t size =
        std::min<uint64_t>(StateFileWriter::kPiece, blob.bytes() - at);
    char* const piece = buffer != nullptr ? buffer + at : own.data();
    absl::Status status = Read(blob.offset() + at, piece, size);
    if (!status.ok()) return status;
    crc = Crc(crc, piece, size);
    status = sink(at, {piece, size});
    if (!status.ok()) return status;
    at += size;
  }
  if (crc != blob.crc32()) {
    return Damaged(
        path_, absl::StrCat("the checksum of its tensor ", index, " is wrong"));
  }
  return absl::OkStatus();
}

}  // namespace holdfast
