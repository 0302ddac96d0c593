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
  void set_mapping(std::shared_ptr<void> mapping) {
    mapping_ = std::move(mapping);
  }

 private:
  Tensor tensor_;
  std::atomic<int64_t>* session_exports_;
  std::shared_ptr<void> mapping_;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_EXPORT_HOLD_H_
