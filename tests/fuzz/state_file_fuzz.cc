// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes in the place of a state file. The first byte says what the others
// are: 0, the whole file; 1, a header, whose checksums are made right, and 64
// bytes of blobs before it, so that what lies behind the checksums is reached.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/stubs/logging.h"
#include "ops/tensor_spec.h"
#include "server/state/saved_tensor.h"
#include "server/state/state_file.h"
#include "zlib.h"

namespace holdfast {
namespace {

constexpr uint64_t kBlobs = 8, kBlobBytes = 64;  // offset and size of all

uint32_t Crc(absl::string_view bytes) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),
            static_cast<uInt>(bytes.size())));
}

// Empty: the bytes are no header.
std::string FileAround(absl::string_view bytes) {
  state::Header header;
  if (!header.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return "";
  }
  std::string file = "HFSTATE1";
  for (uint64_t i = 0; i < kBlobBytes; ++i) {
    file.push_back(static_cast<char>(i));
  }
  for (state::Blob& blob : *header.mutable_blobs()) {
    if (blob.bytes() > kBlobBytes) continue;
    blob.set_offset(kBlobs + blob.offset() % (kBlobBytes - blob.bytes() + 1));
    blob.set_crc32(
        Crc(absl::string_view(file).substr(blob.offset(), blob.bytes())));
  }
  const std::string text = header.SerializeAsString();
  const uint64_t place[2] = {file.size(), text.size()};
  const uint32_t crc = Crc(text);
  file += text;
  file.append(reinterpret_cast<const char*>(place), sizeof(place));
  file.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  return file + "HFSE";
}

void CheckTensors(
    const google::protobuf::RepeatedPtrField<state::SavedTensor>& tensors,
    const state::Header& header) {
  for (const state::SavedTensor& tensor : tensors) {
    TensorSpec spec;
    if (!CheckSavedTensor(tensor, header, &spec).ok()) continue;
    // Whatever it is, its elements lie in its blob.
    const uint64_t blob = header.blobs(tensor.blob()).bytes();
    if (spec.numel() > 0 && spec.nbytes() > 0 && blob == 0) __builtin_trap();
  }
}

void Read(const StateFileReader& file, bool checksums_are_right) {
  for (int i = 0; i < file.header().blobs_size(); ++i) {
    const uint64_t bytes = file.header().blobs(i).bytes();
    uint64_t got = 0;
    const absl::Status status = file.ReadBlob(
        i, nullptr, [&](uint64_t offset, absl::string_view piece) {
          if (offset != got) __builtin_trap();
          got += piece.size();
          return absl::OkStatus();
        });
    if (got != bytes) __builtin_trap();
    if (checksums_are_right && bytes <= kBlobBytes && !status.ok()) {
      __builtin_trap();
    }
    std::string there(bytes, '\0');
    const absl::Status again = file.ReadBlob(
        i, there.data(),
        [](uint64_t, absl::string_view) { return absl::OkStatus(); });
    if (again.ok() != status.ok()) __builtin_trap();
  }
  CheckTensors(file.header().name().tensors(), file.header());
  CheckTensors(file.header().session().kept(), file.header());
}

}  // namespace
}  // namespace holdfast

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace holdfast;
  static const int fd = memfd_create("state", MFD_CLOEXEC);
  // It would log each string that is no text.
  static const google::protobuf::LogSilencer silence;
  static const std::string path = absl::StrCat("/proc/self/fd/", fd);
  if (size == 0) return 0;
  const absl::string_view rest(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  const bool whole = data[0] % 2 == 0;
  const std::string bytes = whole ? std::string(rest) : FileAround(rest);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes.data(), bytes.size(), 0) !=
                                   static_cast<ssize_t>(bytes.size())) {
    __builtin_trap();
  }
  const absl::StatusOr<StateFileReader> file = StateFileReader::Open(path);
  if (file.ok()) {
    Read(*file, !whole);
  } else if (!absl::IsDataLoss(file.status())) {
    __builtin_trap();  // the disk is not at fault
  }
  return 0;
}
