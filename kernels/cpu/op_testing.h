// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests of kernels: an op as the executor runs it, from inference to
// outputs, and tensors to run it on.
// Thread-safety: none; one test uses it.
#ifndef HOLDFAST_KERNELS_CPU_OP_TESTING_H_
#define HOLDFAST_KERNELS_CPU_OP_TESTING_H_

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/test_context.h"
#include "kernels/kernel_table.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {

using AttrList = std::vector<std::pair<std::string, AttrValue>>;

inline Attrs MakeAttrs(OpId id, const AttrList& list) {
  Attrs attrs(&GetOp(id));
  for (const auto& [name, value] : list) attrs.Set(name, value);
  return attrs;
}

// Outputs of `op` over `inputs` (TestTensor() for an absent one), or its error.
// `stop`: what may stop it; null: nothing does.
inline absl::StatusOr<std::vector<TestTensor>> TryOp(
    OpId id, const AttrList& list, const std::vector<TestTensor>& inputs,
    int threads = 1, StopSignal* stop = nullptr) {
  const Attrs attrs = MakeAttrs(id, list);
  std::vector<const TensorSpec*> specs;
  for (const TestTensor& t : inputs) {
    specs.push_back(t.view().data == nullptr ? nullptr : &t.spec());
  }
  OutputSpecs inferred;
  absl::Status s = InferOp(attrs, specs, /*inplace=*/false, &inferred);
  if (!s.ok()) return s;
  TestContext context(threads);
  context.stop = stop;
  std::vector<int64_t*> unknown;
  for (OutputSpec& out : inferred) {
    for (int64_t& size : out.spec.shape) {
      if (size == kUnknownSize) unknown.push_back(&size);
    }
  }
  if (!unknown.empty()) {
    std::vector<TensorView> views;
    for (const TestTensor& t : inputs) views.push_back(t.view());
    std::vector<int64_t> sizes(unknown.size());
    s = CpuKernels().sizes[static_cast<int>(id)](context, attrs, views,
                                                 absl::MakeSpan(sizes));
    if (!s.ok()) return s;
    for (size_t i = 0; i < sizes.size(); ++i) *unknown[i] = sizes[i];
  }
  std::vector<TestTensor> outputs;
  for (const OutputSpec& out : inferred) {
    outputs.emplace_back(out.spec.dtype, out.spec.shape);
  }
  s = RunKernel(CpuKernels().kernels[static_cast<int>(id)], context, attrs,
                inputs, outputs);
  if (!s.ok()) return s;
  return outputs;
}

// The first output of a call that succeeds.
inline TestTensor Op(OpId id, const AttrList& list,
                     const std::vector<TestTensor>& inputs, int threads = 1) {
  auto outputs = TryOp(id, list, inputs, threads);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return outputs.ok() ? (*outputs)[0] : TestTensor();
}

// In place: input 0 is the output.
inline absl::Status OpInPlace(OpId id, const AttrList& list,
                              const std::vector<TestTensor>& inputs) {
  TestContext context;
  return RunKernel(CpuKernels().kernels[static_cast<int>(id)], context,
                   MakeAttrs(id, list), inputs, {inputs[0]});
}

// Small numbers of either sign (0 to 4 for uint8, both values for bool).
inline TestTensor Random(DType dtype, const Dims& shape, int seed = 1) {
  std::mt19937 engine(seed);
  TestTensor t(dtype, shape);
  std::uniform_real_distribution<double> real(-2, 2);
  std::uniform_int_distribution<int> integer(-4, 4);
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (IsFloat(dtype)) {
      t.Set(i, real(engine));
    } else if (dtype == DType::kBool) {
      t.Set(i, integer(engine) > 0);
    } else {
      const int value = integer(engine);
      t.Set(i, dtype == DType::kUInt8 ? std::abs(value) : value);
    }
  }
  return t;
}

// Indices below `limit`.
inline TestTensor RandomIndex(const Dims& shape, int64_t limit, int seed = 1,
                              DType dtype = DType::kInt64) {
  std::mt19937 engine(seed);
  std::uniform_int_distribution<int64_t> pick(0, limit - 1);
  TestTensor t(dtype, shape);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.Set(i, static_cast<double>(pick(engine)));
  }
  return t;
}

// The index tuple of the i-th element, and back.
inline Dims Unravel(int64_t i, const Dims& shape) {
  Dims index(shape.size());
  for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
  return index;
}
inline int64_t Ravel(const Dims& index, const Dims& shape) {
  int64_t i = 0;
  for (size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + index[d];
  return i;
}

// A few tensors of one shape [a, b, c] that lie differently in memory:
// contiguous, transposed, every second element, expanded along a.
inline std::vector<TestTensor> Layouts(DType dtype, int64_t a, int64_t b,
                                       int64_t c) {
  return {Random(dtype, {a, b, c}), Random(dtype, {c, b, a}).Transpose(0, 2),
          Random(dtype, {b, a, c}).Transpose(0, 1),
          Random(dtype, {a, b, 2 * c}).Slice(2, 0, 2 * c, 2),
          Random(dtype, {1, b, c}).Expand({a, b, c})};
}

inline void ExpectNear(const TestTensor& got, const std::vector<double>& want,
                       double tolerance, const std::string& what = "") {
  ASSERT_EQ(got.numel(), static_cast<int64_t>(want.size())) << what;
  for (int64_t i = 0; i < got.numel(); ++i) {
    const double g = got.Get(i), w = want[i];
    if (std::isnan(w) || std::isinf(w)) {
      ASSERT_TRUE(g == w || (std::isnan(g) && std::isnan(w)))
          << what << " element " << i << ": " << g << " instead of " << w;
    } else {
      ASSERT_NEAR(g, w, tolerance * (1 + std::fabs(w)))
          << what << " element " << i;
    }
  }
}

inline void ExpectEqual(const TestTensor& got, const std::vector<double>& want,
                        const std::string& what = "") {
  ExpectNear(got, want, 0, what);
}

// Bit for bit. REQUIRES: contiguous tensors.
inline void ExpectSameBits(const TestTensor& a, const TestTensor& b) {
  ASSERT_EQ(a.spec(), b.spec());
  EXPECT_EQ(0, std::memcmp(a.view().data, b.view().data, a.spec().nbytes()));
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_OP_TESTING_H_
