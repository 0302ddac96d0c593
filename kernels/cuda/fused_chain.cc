// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#if defined(__CUDACC__)
// The rows compare with 0 for types without negative numbers, too.
#pragma nv_diag_suppress 186
#endif

#include "kernels/cuda/fused_chain.h"

#include <algorithm>
#include <cstdint>
#include <functional>

#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/packs.h"
#include "kernels/number_operand.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// Rows of kernels/elementwise.h without those that check their data, are for
// whole numbers, or multiply and add by themselves.
#define HOLDFAST_CHAIN_UNARY(X) \
  X(neg)                        \
  X(abs)                        \
  X(relu)                       \
  X(exp)                        \
  X(expm1)                      \
  X(log)                        \
  X(log1p)                      \
  X(sqrt)                       \
  X(rsqrt)                      \
  X(reciprocal)                 \
  X(sin)                        \
  X(cos)                        \
  X(tanh)                       \
  X(sigmoid)                    \
  X(erf)
#define HOLDFAST_CHAIN_BINARY(X) \
  X(add)                         \
  X(sub)                         \
  X(mul)                         \
  X(div)                         \
  X(maximum)                     \
  X(minimum)                     \
  X(relu_backward)

enum class ChainOp : int {
#define X(name) name,
  HOLDFAST_CHAIN_UNARY(X) HOLDFAST_CHAIN_BINARY(X)
#undef X
      kNone
};

ChainOp ChainOpOf(OpId id) {
  switch (id) {
#define X(name)    \
  case OpId::name: \
    return ChainOp::name;
    HOLDFAST_CHAIN_UNARY(X)
    HOLDFAST_CHAIN_BINARY(X)
#undef X
    default:
      return ChainOp::kNone;
  }
}

constexpr size_t kMostSteps = 16;
constexpr int kWide = kPackWidth<float>;

// What an op takes from the op before it.
struct ChainOperand {
  const float* data = nullptr;  // null: `number`, or the result before
  float number = 0;
  bool before = false;
};

struct ChainStep {
  ChainOp op = ChainOp::kNone;
  ChainOperand a, b;
  float* out = nullptr;
};

// A result that is what it is: no compiler draws it into the next op.
HOLDFAST_HD float Settled(float x) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+f"(x));
#endif
  return x;
}

HOLDFAST_HD float ApplyStep(ChainOp op, float x, float y) {
  switch (op) {
#define X(name)       \
  case ChainOp::name: \
    return Settled(elementwise::op::name::Apply<float>(x));
    HOLDFAST_CHAIN_UNARY(X)
#undef X
#define X(name)       \
  case ChainOp::name: \
    return Settled(elementwise::op::name::Apply<float>(x, y));
    HOLDFAST_CHAIN_BINARY(X)
#undef X
    default:
      return x;
  }
}

struct ChainMap {
  ChainStep steps[kMostSteps];
  int size = 0;
  int64_t n = 0;  // elements

  HOLDFAST_HD float Operand(const ChainOperand& from, float before,
                            int64_t i) const {
    if (from.before) return before;
    return from.data == nullptr ? from.number : from.data[i];
  }
  // all[] holds the results before.
  HOLDFAST_HD void Operands(const ChainOperand& from, int64_t first,
                            float (&all)[kWide]) const {
    if (from.before) return;
    if (from.data != nullptr) {
      LoadPack<kWide>(from.data + first, all);
    } else {
      for (float& x : all) x = from.number;
    }
  }
  // The i-th pack; the last one may be short.
  HOLDFAST_HD void operator()(int64_t i) const {
    const int64_t first = i * kWide;
    if (first + kWide > n) {
      for (int64_t j = first; j < n; ++j) {
        float x = 0;
        for (int s = 0; s < size; ++s) {
          const ChainStep& step = steps[s];
          x = ApplyStep(step.op, Operand(step.a, x, j), Operand(step.b, x, j));
          step.out[j] = x;
        }
      }
      return;
    }
    float x[kWide] = {};
    for (int s = 0; s < size; ++s) {
      const ChainStep& step = steps[s];
      float a[kWide], b[kWide];
      for (int j = 0; j < kWide; ++j) a[j] = b[j] = x[j];
      Operands(step.a, first, a);
      Operands(step.b, first, b);
      for (int j = 0; j < kWide; ++j) x[j] = ApplyStep(step.op, a[j], b[j]);
      StorePack<kWide>(step.out + first, x);
    }
  }
};

bool IsPart(const TensorView& view, int64_t n) {
  return view.present() && view.spec->dtype == DType::kFloat32 &&
         (IsNumber(view) || IsDense(view, DType::kFloat32, n));
}

bool IsStep(const LaunchRequest& request, int64_t n) {
  if (ChainOpOf(request.attrs.schema().id) == ChainOp::kNone) return false;
  bool tensor = false;
  for (const TensorView& in : request.inputs) {
    if (!IsPart(in, n)) return false;
    tensor = tensor || !IsNumber(in);
  }
  return tensor && request.outputs.size() == 1 && IsPart(request.outputs[0], n);
}

// Neither the same memory nor none in common: other elements of one op may be
// those of another.
bool Clash(const TensorView& a, const TensorView& b, int64_t n) {
  if (IsNumber(a) || IsNumber(b) || a.data == b.data) return false;
  const std::less<const float*> before;
  const float *p = a.as<float>(), *q = b.as<float>();
  return before(p, q + n) && before(q, p + n);
}

// Whether what `later` reads or writes clashes with what an earlier one writes,
// or what it writes with what an earlier one reads.
bool Clash(const LaunchRequest& earlier, const LaunchRequest& later,
           int64_t n) {
  const TensorView &written = earlier.outputs[0], &writes = later.outputs[0];
  if (Clash(written, writes, n)) return true;
  return std::any_of(
             later.inputs.begin(), later.inputs.end(),
             [&](const TensorView& in) { return Clash(written, in, n); }) ||
         std::any_of(
             earlier.inputs.begin(), earlier.inputs.end(),
             [&](const TensorView& in) { return Clash(in, writes, n); });
}

ChainOperand OperandOf(const TensorView& view, const float* before) {
  ChainOperand operand;
  if (IsNumber(view)) {
    operand.number = *view.as<float>();
  } else if (view.data == before) {
    operand.before = true;
  } else {
    operand.data = view.as<float>();
  }
  return operand;
}

}  // namespace

size_t ChainLength(absl::Span<const LaunchRequest> requests) {
  if (requests.empty() || requests[0].outputs.size() != 1) return 0;
  const int64_t n = requests[0].outputs[0].spec->numel();
  const size_t most = std::min(requests.size(), kMostSteps);
  for (size_t i = 0; i < most; ++i) {
    if (!IsStep(requests[i], n)) return i;
    for (size_t j = 0; j < i; ++j) {
      if (Clash(requests[j], requests[i], n)) return i;
    }
  }
  return most;
}

absl::Status RunChain(KernelContext& context,
                      absl::Span<const LaunchRequest> requests) {
  ChainMap map;
  map.n = requests[0].outputs[0].spec->numel();
  const float* before = nullptr;
  for (const LaunchRequest& request : requests) {
    ChainStep& step = map.steps[map.size++];
    step.op = ChainOpOf(request.attrs.schema().id);
    step.a = OperandOf(request.inputs[0], before);
    if (request.inputs.size() > 1) {
      step.b = OperandOf(request.inputs[1], before);
    }
    step.out = request.outputs[0].as<float>();
    before = step.out;
  }
  return ForEach(context, (map.n + kWide - 1) / kWide, map);
}

}  // namespace holdfast
