// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: integers that need no read (known_integer.h).
#include <memory>
#include <utility>

#include "client/known_integer.h"
#include "client/session_core.h"
#include "ops/op_id.h"

namespace holdfast::client {
namespace {

// Vectors up to this size are read whole for one element.
constexpr int64_t kMaxVectorBytes = 4096;

// May its elements be kept? Nobody else may write the memory unseen.
bool MayKeep(const TensorState& tensor) {
  const StorageState& memory = tensor.storage()->memory();
  return !memory.exported() && !memory.shared && !memory.foreign &&
         memory.mirror == nullptr && tensor.storage()->mirror == nullptr;
}

bool IsSmallVector(const TensorState& tensor) {
  const TensorSpec& spec = tensor.spec();
  return spec.rank() == 1 && IsIntegral(spec.dtype) && !tensor.pending() &&
         spec.nbytes() <= kMaxVectorBytes;
}

// In int64's ring, as the daemon computes.
bool Combine(OpId op, int64_t a, int64_t b, int64_t* result) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  switch (op) {
    case OpId::add:
      *result = static_cast<int64_t>(x + y);
      return true;
    case OpId::sub:
      *result = static_cast<int64_t>(x - y);
      return true;
    case OpId::mul:
      *result = static_cast<int64_t>(x * y);
      return true;
    default:
      return false;
  }
}

}  // namespace

const int64_t* SessionCore::Integer(const TensorState& tensor) const {
  if (tensor.known == nullptr) return nullptr;
  const KnownIntegers& own = *tensor.known;
  const TensorState& of = own.vector ? *own.vector : tensor;
  if (of.known == nullptr || of.known->values.empty()) return nullptr;
  const uint32_t writes = of.storage()->memory().writes.load();
  if (own.writes != writes || of.known->writes != writes || !MayKeep(of)) {
    return nullptr;
  }
  return &of.known->values[own.vector ? own.index : 0];
}

KnownInteger SessionCore::FindInteger(const Tensor& tensor) {
  KnownInteger found;
  if (!IsIntegral(tensor->spec().dtype) || tensor->spec().rank() != 0 ||
      tensor->pending() || forked() || !usable()) {
    return found;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (const int64_t* value = Integer(*tensor)) {
    found.known = true;
    found.value = *value;
  } else if (MayKeep(*tensor)) {
    found.writes = tensor->storage()->memory().writes.load();
    // Once written it is read itself: a write may have failed, which only its
    // own read tells.
    const bool element = tensor->known != nullptr && tensor->known->vector &&
                         tensor->known->writes == found.writes;
    found.to_read = element ? tensor->known->vector : tensor;
  }
  return found;
}

void SessionCore::LearnIntegers(const Tensor& tensor, uint32_t writes,
                                std::vector<int64_t> values) {
  auto known =
      std::make_unique<KnownIntegers>();  // the old one: after the lock
  known->values = std::move(values);
  known->writes = writes;
  std::lock_guard<std::mutex> lock(mutex_);
  std::swap(tensor->known, known);
}

void SessionCore::FollowIntegers(const Attrs& attrs,
                                 absl::Span<const Tensor> inputs,
                                 const Tensor& made) {
  const OpId op = attrs.schema().id;
  if (op == OpId::select) {
    if (!IsSmallVector(*inputs[0])) return;
    const int64_t at = attrs.Int("index");
    made->known = std::make_unique<KnownIntegers>();
    made->known->vector = inputs[0];
    made->known->writes = made->storage()->memory().writes.load();
    made->known->index = at < 0 ? at + inputs[0]->spec().shape[0] : at;
    return;
  }
  int64_t operands[2];
  for (int i = 0; i < 2; ++i) {
    if (!inputs[i]) {
      const auto* number = std::get_if<int64_t>(&attrs.Get(i));
      if (number == nullptr) return;
      operands[i] = *number;
    } else {
      if (inputs[i]->spec().dtype != DType::kInt64) return;
      const int64_t* value = Integer(*inputs[i]);
      if (value == nullptr) return;
      operands[i] = *value;
    }
  }
  int64_t result = 0;
  if (!Combine(op, operands[0], operands[1], &result)) return;
  made->known = std::make_unique<KnownIntegers>();
  made->known->values = {result};
}

}  // namespace holdfast::client
