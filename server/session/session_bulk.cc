// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Session: bytes that travel beside the stream, uploads until a Put takes them
// and results until the client has fetched them.
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/session/session.h"

namespace holdfast {
namespace {

// Uploads never used and downloads never fetched, together.
constexpr uint64_t kMaxBulkBytes = uint64_t{16} << 30;

}  // namespace

absl::Status Session::StoreUpload(uint64_t id, SharedBytes bytes,
                                  MemoryCharge charge) {
  std::lock_guard<std::mutex> lock(bulk_mutex_);
  uint64_t old = 0;
  const auto it = uploads_.find(id);
  if (it != uploads_.end()) old = it->second.bytes->size();
  if (bulk_bytes_ - old + bytes->size() > kMaxBulkBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "[upload] at most ", kMaxBulkBytes, " bytes may wait. Got ",
        bytes->size(), " more over ", bulk_bytes_));
  }
  bulk_bytes_ += bytes->size() - old;
  uploads_[id] = {std::move(bytes), std::move(charge)};
  return absl::OkStatus();
}

absl::StatusOr<SharedBytes> Session::TakeUpload(uint64_t id) {
  std::lock_guard<std::mutex> lock(bulk_mutex_);
  const auto it = uploads_.find(id);
  if (it == uploads_.end()) {
    return absl::NotFoundError(absl::StrCat("[put] unknown upload ", id));
  }
  SharedBytes bytes = std::move(it->second.bytes);
  bulk_bytes_ -= bytes->size();
  // From here on they are the tensor's, which is counted itself.
  uploads_.erase(it);
  return bytes;
}

absl::StatusOr<uint64_t> Session::AddDownload(SharedBytes bytes) {
  MemoryCharge charge(options_.account);
  const absl::Status counted = charge.Add(bytes->size());
  std::lock_guard<std::mutex> lock(bulk_mutex_);
  // Who has filled their memory may still read it, one tensor at a time.
  if (!counted.ok() && !downloads_.empty()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[read] ", downloads_.size(),
                     " results wait to be fetched, and there is no room for "
                     "another one: ",
                     counted.message()));
  }
  if (!counted.ok()) charge.AddAnyway(bytes->size());
  if (bulk_bytes_ + bytes->size() > kMaxBulkBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[read] at most ", kMaxBulkBytes, " bytes may wait. Got ",
                     bytes->size(), " more over ", bulk_bytes_));
  }
  bulk_bytes_ += bytes->size();
  downloads_[next_download_] = {std::move(bytes), std::move(charge)};
  return next_download_++;
}

absl::StatusOr<SharedBytes> Session::FindDownload(uint64_t id) {
  std::lock_guard<std::mutex> lock(bulk_mutex_);
  const auto it = downloads_.find(id);
  if (it == downloads_.end()) {
    return absl::NotFoundError(absl::StrCat("[read] unknown download ", id));
  }
  return it->second.bytes;
}

void Session::DropBulk() {
  std::lock_guard<std::mutex> lock(bulk_mutex_);
  uploads_.clear();
  downloads_.clear();
  bulk_bytes_ = 0;
}

void Session::DropDownload(uint64_t id) {
  std::lock_guard<std::mutex> lock(bulk_mutex_);
  const auto it = downloads_.find(id);
  if (it == downloads_.end()) return;
  bulk_bytes_ -= it->second.bytes->size();
  downloads_.erase(it);
}

}  // namespace holdfast
