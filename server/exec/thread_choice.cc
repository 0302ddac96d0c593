// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/thread_choice.h"

#include <algorithm>

#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Loops over fewer elements stay on one thread anyway.
constexpr int64_t kFewElements = 8192;
// oneDNN splits no sums of so few terms among threads.
constexpr int64_t kTermsOfOneThread = 256;

bool HasMany(absl::Span<const TensorView> views) {
  for (const TensorView& view : views) {
    if (!view.present()) continue;
    int64_t elements = 1;
    for (const int64_t size : view.spec->shape) elements *= size;
    if (elements >= kFewElements) return true;
  }
  return false;
}

bool SplitsSums(OpId op, absl::Span<const TensorView> inputs) {
  switch (op) {
    case OpId::matmul:
    case OpId::linear: {
      const TensorSpec& a = *inputs[0].spec;
      return a.rank() == 0 || a.shape.back() > kTermsOfOneThread;
    }
    case OpId::conv2d:
    case OpId::conv2d_backward_input:
    case OpId::conv2d_backward_weight:
    case OpId::conv3d:
    case OpId::conv3d_backward_input:
    case OpId::conv3d_backward_weight:
    case OpId::rnn_layer:
    case OpId::rnn_layer_backward:
    case OpId::attention:
    case OpId::attention_backward:
      return true;
    default:
      return false;
  }
}

constexpr size_t kPlaces = 4096;  // a power of two
// Calls before a way is believed. The first of each is not counted: it finds
// cold caches, and what libraries prepare.
constexpr uint8_t kEnough = 4;
// A mean follows the last few calls.
constexpr float kWeight = 0.25f;
// One thread must be that much better, so that the choice does not waver.
constexpr float kBetter = 0.85f;
// Trying the worse way costs one part in so many of the time.
constexpr int64_t kRarely = 64;
constexpr int64_t kSoon = 1'000'000;
constexpr int64_t kLatest = 2'000'000'000;

}  // namespace

uint64_t ThreadChoiceKey(const Attrs& attrs,
                         absl::Span<const TensorView> inputs,
                         absl::Span<const TensorView> outputs) {
  const OpId op = attrs.schema().id;
  // Most ops of a program are small: they pay for one look at their sizes.
  if (!HasMany(inputs) && !HasMany(outputs)) return 0;
  // Their kernels go on with what was found for so many threads.
  if (attrs.schema().has_any(kUnknownSizes)) return 0;
  uint64_t hash = static_cast<uint64_t>(op) + 1;
  const auto add = [&hash](uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  for (const auto& views : {inputs, outputs}) {
    for (const TensorView& view : views) {
      if (!view.present()) {
        add(0);
        continue;
      }
      const TensorSpec& spec = *view.spec;
      add(static_cast<uint64_t>(spec.dtype));
      for (int i = 0; i < spec.rank(); ++i) {
        add(static_cast<uint64_t>(spec.shape[i]));
        add(static_cast<uint64_t>(spec.strides[i]));
      }
    }
  }
  if (SplitsSums(op, inputs)) return 0;
  return hash | 1;
}

ThreadChoice::ThreadChoice() : known_(kPlaces) {}

ThreadChoice::Way ThreadChoice::Choose(uint64_t key, int64_t now) {
  Known& known = known_[(key ^ key >> 32) & (kPlaces - 1)];
  if (known.key != key) {
    known = Known();
    known.key = key;
  }
  last_ = &known;
  last_start_ = now;
  last_way_ = known.way;
  const Way other = known.way == kTeam ? kAlone : kTeam;
  if (known.calls[known.way] == kEnough && now >= known.try_at) {
    last_way_ = other;
  }
  return last_way_;
}

void ThreadChoice::Took(int64_t nanoseconds) {
  Known& known = *last_;
  const Way way = last_way_;
  float& mean = known.mean[way];
  const float took = static_cast<float>(nanoseconds);
  if (known.calls[way] < 2) {
    mean = took;
  } else {
    mean += kWeight * (took - mean);
  }
  known.calls[way] = std::min<uint8_t>(known.calls[way] + 1, kEnough);
  if (way != known.way) {
    const auto lost =
        static_cast<int64_t>(std::max(0.0f, took - known.mean[known.way]));
    known.try_at =
        last_start_ + nanoseconds + std::clamp(lost * kRarely, kSoon, kLatest);
  }
  if (known.calls[kTeam] == kEnough && known.calls[kAlone] == kEnough) {
    known.way =
        known.mean[kAlone] < kBetter * known.mean[kTeam] ? kAlone : kTeam;
  }
}

}  // namespace holdfast
