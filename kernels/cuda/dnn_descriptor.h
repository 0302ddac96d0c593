// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// DnnDescriptor: one descriptor of cuDNN's graph API. The first failure is kept
// and everything after it is passed over, so that a chain of calls is looked at
// once, at its end. Thread-safety: none.
#ifndef HOLDFAST_KERNELS_CUDA_DNN_DESCRIPTOR_H_
#define HOLDFAST_KERNELS_CUDA_DNN_DESCRIPTOR_H_

#include <cudnn_graph.h>

#include <utility>
#include <vector>

#include "kernels/cuda/cuda_libraries.h"

namespace holdfast::cuda {

class DnnDescriptor {
 public:
  // `dnn` must outlive it.
  DnnDescriptor(const DnnLibrary& dnn, cudnnBackendDescriptorType_t type)
      : dnn_(&dnn), status_(dnn.cudnnBackendCreateDescriptor(type, &handle_)) {}
  ~DnnDescriptor() {
    if (handle_ != nullptr) dnn_->cudnnBackendDestroyDescriptor(handle_);
  }
  DnnDescriptor(DnnDescriptor&& other) noexcept
      : dnn_(other.dnn_),
        handle_(std::exchange(other.handle_, nullptr)),
        status_(other.status_) {}
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept {
    std::swap(dnn_, other.dnn_);
    std::swap(handle_, other.handle_);
    std::swap(status_, other.status_);
    return *this;
  }

  void Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           int64_t count, const void* values) {
    if (status_ != CUDNN_STATUS_SUCCESS) return;
    status_ =
        dnn_->cudnnBackendSetAttribute(handle_, name, type, count, values);
  }
  void Set(cudnnBackendAttributeName_t name,
           const std::vector<int64_t>& values) {
    Set(name, CUDNN_TYPE_INT64, static_cast<int64_t>(values.size()),
        values.data());
  }
  void Set(cudnnBackendAttributeName_t name, const DnnDescriptor& value) {
    cudnnBackendDescriptor_t handle = value.handle_;
    if (value.status_ != CUDNN_STATUS_SUCCESS) status_ = value.status_;
    Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  }
  void SetAll(cudnnBackendAttributeName_t name,
              const std::vector<DnnDescriptor>& values) {
    std::vector<cudnnBackendDescriptor_t> handles;
    for (const DnnDescriptor& value : values) {
      if (value.status_ != CUDNN_STATUS_SUCCESS) status_ = value.status_;
      handles.push_back(value.handle_);
    }
    Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
        static_cast<int64_t>(handles.size()), handles.data());
  }
  // Ends the description; true if all of it went well.
  bool Finalize() {
    if (status_ == CUDNN_STATUS_SUCCESS) {
      status_ = dnn_->cudnnBackendFinalize(handle_);
    }
    return ok();
  }

  // Reads up to `room` values; how many there are, 0 after a failure.
  int64_t Get(cudnnBackendAttributeName_t name,
              cudnnBackendAttributeType_t type, int64_t room,
              void* values) const {
    int64_t count = 0;
    if (!ok()) return 0;
    const cudnnStatus_t status = dnn_->cudnnBackendGetAttribute(
        handle_, name, type, room, &count, values);
    return status == CUDNN_STATUS_SUCCESS ? count : 0;
  }

  bool ok() const { return status_ == CUDNN_STATUS_SUCCESS; }
  cudnnStatus_t status() const { return status_; }
  cudnnBackendDescriptor_t handle() const { return handle_; }

 private:
  const DnnLibrary* dnn_;
  cudnnBackendDescriptor_t handle_ = nullptr;
  cudnnStatus_t status_;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_DNN_DESCRIPTOR_H_
