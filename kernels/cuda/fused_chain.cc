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

namespace holdfast::cuda {
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

// What an op takes from the op before it.
struct ChainOperand {
  const void* data = nullptr;  // null: `number`, or the result before
  float number = 0;
  bool before = false;
};

struct ChainStep {
  ChainOp op = ChainOp::kNone;
  ChainOperand a, b;
  void* out = nullptr;
};

// A result that is what it is: no compiler draws it into the next op.
HOLDFAST_HD float Settled(float x) {
#if defined(__CUDA_ARCH__)
  asm volatile("" : "+f"(x));
#endif
  return x;
}

// results = op of some elements, which may be the results' own. The op is
// chosen once for all of them: elements that an index chooses would lie in
// memory.
template <int kCount>
HOLDFAST_HD void ApplyStep(ChainOp op, const float (&x)[kCount],
                           const float (&y)[kCount], float (&results)[kCount]) {
  switch (op) {
#define X(name)                                                        \
  case ChainOp::name:                                                  \
    HOLDFAST_UNROLL                                                    \
    for (int j = 0; j < kCount; ++j) {                                 \
      results[j] = Settled(elementwise::op::name::Apply<float>(x[j])); \
    }                                                                  \
    break;
    HOLDFAST_CHAIN_UNARY(X)
#undef X
#define X(name)                                                              \
  case ChainOp::name:                                                        \
    HOLDFAST_UNROLL                                                          \
    for (int j = 0; j < kCount; ++j) {                                       \
      results[j] = Settled(elementwise::op::name::Apply<float>(x[j], y[j])); \
    }                                                                        \
    break;
    HOLDFAST_CHAIN_BINARY(X)
#undef X
    default:
      break;
  }
}

// Tensors of S, computed with as floats.
template <typename S>
struct ChainMap {
  static constexpr int kWide = kPackWidth<S>;

  ChainStep steps[kMostSteps];
  int size = 0;
  int64_t n = 0;  // elements

  static HOLDFAST_HD const S* Of(const void* data) {
    return static_cast<const S*>(data);
  }
  // A short pack is filled up with its first element.
  HOLDFAST_HD void Load(const ChainOperand& from, int64_t first,
                        const float (&before)[kWide],
                        float (&all)[kWide]) const {
    if (from.before || from.data == nullptr) {
      HOLDFAST_UNROLL
      for (int j = 0; j < kWide; ++j) {
        all[j] = from.before ? before[j] : from.number;
      }
    } else if (first + kWide <= n) {
      LoadPack<kWide>(Of(from.data) + first, all);
    } else {
      HOLDFAST_UNROLL
      for (int j = 0; j < kWide; ++j) {
        const int64_t at = first + j < n ? first + j : first;
        all[j] = Convert<float>(Of(from.data)[at]);
      }
    }
  }
  HOLDFAST_HD void Store(const float (&results)[kWide], int64_t first,
                         S* out) const {
    if (first + kWide <= n) {
      StorePack<kWide>(out + first, results);
      return;
    }
    HOLDFAST_UNROLL
    for (int j = 0; j < kWide; ++j) {
      if (first + j < n) out[first + j] = Convert<S>(results[j]);
    }
  }
  // The i-th pack; the last one may be short.
  HOLDFAST_HD void operator()(int64_t i) const {
    const int64_t first = i * kWide;
    float x[kWide] = {};
    for (int s = 0; s < size; ++s) {
      const ChainStep& step = steps[s];
      float a[kWide], b[kWide];
      Load(step.a, first, x, a);
      Load(step.b, first, x, b);
      ApplyStep(step.op, a, b, x);
      Store(x, first, static_cast<S*>(step.out));
      // What the next op would read.
      HOLDFAST_UNROLL
      for (float& one : x) one = Convert<float>(Convert<S>(one));
    }
  }
};

bool HasChains(DType type) {
  return type == DType::kFloat32 || type == DType::kFloat16 ||
         type == DType::kBFloat16;
}

// A tensor of the chain's type, or a number of the type that it computes in.
bool IsPart(const TensorView& view, DType type, int64_t n) {
  if (!view.present()) return false;
  return IsNumber(view) ? view.spec->dtype == DType::kFloat32
                        : IsDense(view, type, n);
}

bool IsStep(const LaunchRequest& request, DType type, int64_t n) {
  if (ChainOpOf(request.attrs.schema().id) == ChainOp::kNone) return false;
  bool tensor = false;
  for (const TensorView& in : request.inputs) {
    if (!IsPart(in, type, n)) return false;
    tensor = tensor || !IsNumber(in);
  }
  return tensor && request.outputs.size() == 1 &&
         IsPart(request.outputs[0], type, n);
}

// Neither the same memory nor none in common: other elements of one op may be
// those of another.
bool Clash(const TensorView& a, const TensorView& b, size_t bytes) {
  if (IsNumber(a) || IsNumber(b) || a.data == b.data) return false;
  const std::less<const char*> before;
  const char *p = a.as<char>(), *q = b.as<char>();
  return before(p, q + bytes) && before(q, p + bytes);
}

// Whether what `later` reads or writes clashes with what an earlier one writes,
// or what it writes with what an earlier one reads.
bool Clash(const LaunchRequest& earlier, const LaunchRequest& later,
           size_t bytes) {
  const TensorView &written = earlier.outputs[0], &writes = later.outputs[0];
  if (Clash(written, writes, bytes)) return true;
  return std::any_of(
             later.inputs.begin(), later.inputs.end(),
             [&](const TensorView& in) { return Clash(written, in, bytes); }) ||
         std::any_of(
             earlier.inputs.begin(), earlier.inputs.end(),
             [&](const TensorView& in) { return Clash(in, writes, bytes); });
}

ChainOperand OperandOf(const TensorView& view, const void* before) {
  ChainOperand operand;
  if (IsNumber(view)) {
    operand.number = *view.as<float>();
  } else if (view.data == before) {
    operand.before = true;
  } else {
    operand.data = view.data;
  }
  return operand;
}

template <typename S>
absl::Status RunChainOf(KernelContext& context,
                        absl::Span<const LaunchRequest> requests) {
  ChainMap<S> map;
  map.n = requests[0].outputs[0].spec->numel();
  const void* before = nullptr;
  for (const LaunchRequest& request : requests) {
    ChainStep& step = map.steps[map.size++];
    step.op = ChainOpOf(request.attrs.schema().id);
    step.a = OperandOf(request.inputs[0], before);
    if (request.inputs.size() > 1) {
      step.b = OperandOf(request.inputs[1], before);
    }
    step.out = request.outputs[0].data;
    before = step.out;
  }
  return ForEach(context, (map.n + map.kWide - 1) / map.kWide, map);
}

}  // namespace

size_t ChainLength(absl::Span<const LaunchRequest> requests) {
  if (requests.empty() || requests[0].outputs.size() != 1) return 0;
  const TensorSpec& spec = *requests[0].outputs[0].spec;
  if (!HasChains(spec.dtype)) return 0;
  const int64_t n = spec.numel();
  const size_t bytes = n * ItemSize(spec.dtype);
  const size_t most = std::min(requests.size(), kMostSteps);
  for (size_t i = 0; i < most; ++i) {
    if (!IsStep(requests[i], spec.dtype, n)) return i;
    for (size_t j = 0; j < i; ++j) {
      if (Clash(requests[j], requests[i], bytes)) return i;
    }
  }
  return most;
}

absl::Status RunChain(KernelContext& context,
                      absl::Span<const LaunchRequest> requests) {
  switch (requests[0].outputs[0].spec->dtype) {
    case DType::kFloat16:
      return RunChainOf<Float16>(context, requests);
    case DType::kBFloat16:
      return RunChainOf<BFloat16>(context, requests);
    default:
      return RunChainOf<float>(context, requests);
  }
}

}  // namespace holdfast::cuda
