// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ExportHold: marks a tensor's memory as visible to the program while it
// lives, and keeps the tensor and the mapping alive as long.
// Thread-safety: construct and destroy on any thread, never under a session's
// lock (it drops a Tensor).
#ifndef HOLDFAST_CLIENT_EXPORT_HOLD_H_
#define HOLDFAST_CLIENT_EXPORT_HOLD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "client/tensor.h"

namespace holdfast::client {

class ExportHold {
 public:
  // `session_exports` belongs to the tensor's session.
  ExportHold(Tensor tensor, std::atomic<int64_t>* session_exports,
             std::shared_ptr<void> mapping = nullptr)
      : tensor_(std::move(tensor)),
        session_exports_(session_exports),
        mapping_(std::move(mapping)) {
    tensor_->storage()->memory().exports.fetch_add(1);
    session_exports_->fetch_add(1);
  }
  ~ExportHold() {
    // Whoever looked at the memory may have written it.
    tensor_->storage()->memory().writes.fetch_add(1);
    tensor_->storage()->memory().exports.fetch_sub(1);
    session_exports_->fetch_sub(1);
  }
  ExportHold(const ExportHold&) = delete;
  ExportHold& operator=(const ExportHold&) = delete;

  const Tensor& tensor() const { return tensor_; }
  const std::shared_ptr<void>& mapping() const { return mapping_; }
  void set_mapping(std::shared_ptr<void> mapping) {
    mapping_ = std::move(mapping);
  }

 private:
  Tensor tensor_;
  std::atomic<int64_t>* session_exports_;
  std::shared_ptr<void> mapping_;
};

// Somebody has the address of a storage: until it dies it is as if an array
// looked at it. The storage owns this.
class AddressHold {
 public:
  AddressHold(StorageState* memory, std::weak_ptr<Session> session,
              std::atomic<int64_t>* session_exports,
              std::shared_ptr<void> mapping)
      : session_(std::move(session)),
        session_exports_(session_exports),
        mapping_(std::move(mapping)) {
    memory->exports.fetch_add(1);
    session_exports_->fetch_add(1);
  }
  ~AddressHold() {
    if (session_.lock() != nullptr) session_exports_->fetch_sub(1);
  }
  AddressHold(const AddressHold&) = delete;
  AddressHold& operator=(const AddressHold&) = delete;

 private:
  const std::weak_ptr<Session> session_;
  std::atomic<int64_t>* const session_exports_;  // the session's
  const std::shared_ptr<void> mapping_;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_EXPORT_HOLD_H_
