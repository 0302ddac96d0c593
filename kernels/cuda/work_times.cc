// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/work_times.h"

#include <chrono>
#include <utility>

namespace holdfast::cuda {
namespace {

// The driver tells distances as floats of milliseconds: 0.06 us of a second.
constexpr float kFarMs = 1000;

int64_t Now() {
  return std::chrono::nanoseconds(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

WorkTimes::~WorkTimes() {
  for (const Span& span : spans_) {
    cudaEventDestroy(span.begin);
    cudaEventDestroy(span.end);
  }
  if (open_) cudaEventDestroy(open_->begin);
  if (anchor_ != nullptr) cudaEventDestroy(anchor_);
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
}

// Null where the driver refuses: that work is not timed.
cudaEvent_t WorkTimes::Record() {
  cudaEvent_t event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else if (cudaEventCreate(&event) != cudaSuccess) {
    cudaGetLastError();  // not the next launch's
    return nullptr;
  }
  if (cudaEventRecord(event, stream_) == cudaSuccess) return event;
  cudaGetLastError();
  spare_.push_back(event);
  return nullptr;
}

void WorkTimes::Anchor() {
  anchor_ = Record();
  if (anchor_ == nullptr) return;
  cudaEventSynchronize(anchor_);
  anchor_ns_ = static_cast<double>(Now());
}

void WorkTimes::set_tag(std::optional<uint64_t> tag) {
  if (tag && !tag_) {
    // The clocks drift apart: each profile has an anchor of its own.
    if (anchor_ != nullptr && spans_.empty()) {
      spare_.push_back(std::exchange(anchor_, nullptr));
    }
    if (anchor_ == nullptr) Anchor();
  }
  tag_ = tag;
}

void WorkTimes::Begin(std::string name) {
  if (!tag_ || anchor_ == nullptr) return;
  Span span;
  span.time.name = std::move(name);
  span.time.tag = *tag_;
  span.begin = Record();
  if (span.begin != nullptr) open_ = std::move(span);
}

void WorkTimes::End() {
  if (!open_) return;
  open_->end = Record();
  if (open_->end == nullptr) {
    spare_.push_back(open_->begin);
  } else {
    spans_.push_back(*std::move(open_));
  }
  open_.reset();
}

std::vector<Device::WorkTime> WorkTimes::Take() {
  std::vector<Device::WorkTime> done;
  while (!spans_.empty() && cudaEventQuery(spans_.front().end) == cudaSuccess) {
    Span span = std::move(spans_.front());
    spans_.pop_front();
    float from_anchor = 0, took = 0;
    if (cudaEventElapsedTime(&from_anchor, anchor_, span.begin) ==
            cudaSuccess &&
        cudaEventElapsedTime(&took, span.begin, span.end) == cudaSuccess) {
      const double start = anchor_ns_ + from_anchor * 1e6;
      span.time.start_ns = static_cast<int64_t>(start);
      span.time.duration_ns = static_cast<int64_t>(took * 1e6);
      done.push_back(std::move(span.time));
      if (from_anchor > kFarMs) {
        anchor_ns_ = start;
        std::swap(anchor_, span.begin);
      }
    }
    spare_.push_back(span.begin);
    spare_.push_back(span.end);
  }
  cudaGetLastError();  // "not ready" is no error of the next launch
  return done;
}

}  // namespace holdfast::cuda
