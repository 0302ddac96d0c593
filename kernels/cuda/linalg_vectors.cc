// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops on vectors that would be many passes of others: cross product, distances.
#include <cmath>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/reduce.h"

namespace holdfast::cuda {
namespace {

// a b - c d; integers wrap.
template <typename T>
HOLDFAST_HD T Minor(T a, T b, T c, T d) {
  using elementwise::Multiply;
  return elementwise::Subtract(Multiply(a, b), Multiply(c, d));
}

template <typename T>
struct Cross {
  Offsets<2> offsets;  // of an element of the result: in a, in b
  int64_t inner;       // elements between those of a vector
  Operand a, b;
  T* out;

  HOLDFAST_HD void operator()(int64_t i) const {
    const int64_t x = i / inner * 3 * inner + i % inner;
    T u[3], v[3];
    for (int k = 0; k < 3; ++k) {
      int64_t at[2];
      offsets.At(x + k * inner, at);
      u[k] = a.Load<T>(at[0]);
      v[k] = b.Load<T>(at[1]);
    }
    for (int k = 0; k < 3; ++k) {
      const int m = (k + 1) % 3, n = (k + 2) % 3;
      out[x + k * inner] = Minor(u[m], v[n], u[n], v[m]);
    }
  }
};

// Kinds of |d|^p summed up.
enum class Order { kZero, kOne, kTwo, kInfinity, kOther };

Order OrderOf(double p) {
  return p == 0          ? Order::kZero
         : p == 1        ? Order::kOne
         : p == 2        ? Order::kTwo
         : std::isinf(p) ? Order::kInfinity
                         : Order::kOther;
}

struct SumTerms {
  using Acc = double;
  static HOLDFAST_HD Acc Init() { return 0; }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) { return a + b; }
};
// NaN stays.
struct LargestTerm {
  using Acc = double;
  static HOLDFAST_HD Acc Init() { return 0; }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    return a > b || a != a ? a : b;
  }
};

// Rows of n and m vectors of d elements.
struct Pairs {
  int64_t n, m, d;
  Order order;
  double p;

  HOLDFAST_HD double Term(double difference) const {
    const double size = std::fabs(difference);
    switch (order) {
      case Order::kZero:
        return difference != 0 ? 1 : 0;
      case Order::kTwo:
        return size * size;
      case Order::kOther:
        return std::pow(size, p);
      default:
        return size;
    }
  }
  HOLDFAST_HD double Result(double total) const {
    return order == Order::kTwo     ? std::sqrt(total)
           : order == Order::kOther ? std::pow(total, 1 / p)
                                    : total;
  }
};

template <typename R, typename T>
absl::Status Distances(KernelContext& context, const Pairs& pairs, const T* a,
                       const T* b, const TensorView& output) {
  T* const out = output.as<T>();
  return ReduceRows<R>(
      context, output.spec->numel(), pairs.d, /*columns=*/false,
      [=] HOLDFAST_LAMBDA(int64_t i, int64_t k) {
        const int64_t row = i / pairs.m;
        const int64_t other = row / pairs.n * pairs.m + i % pairs.m;
        // Differences in T, as the CPU takes them.
        const T difference = a[row * pairs.d + k] - b[other * pairs.d + k];
        return pairs.Term(difference);
      },
      [=] HOLDFAST_LAMBDA(int64_t i, double total) {
        out[i] = static_cast<T>(pairs.Result(total));
      });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(linalg_cross) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), out.rank());
  if (!dim.ok()) return dim.status();
  int64_t inner = 1;
  for (int d = *dim + 1; d < out.rank(); ++d) inner *= out.shape[d];
  const Dims a = BroadcastStrides(*inputs[0].spec, out.shape);
  const Dims b = BroadcastStrides(*inputs[1].spec, out.shape);
  const Offsets<2> offsets = MakeOffsets<2>(out.shape, {a, b});
  return DispatchDType(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return UnsupportedDType<absl::Status>();
    } else {
      return ForEach(context, out.numel() / 3,
                     Cross<T>{offsets, inner, Operand(inputs[0]),
                              Operand(inputs[1]), outputs[0].as<T>()});
    }
  });
}

HOLDFAST_CUDA_KERNEL(linalg_cdist) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  const int rank = out.spec->rank();
  const double p = attrs.Float("p");
  const Pairs pairs = {out.spec->shape[rank - 2], out.spec->shape[rank - 1],
                       inputs[0].spec->shape.back(), OrderOf(p), p};
  TensorSpec specs[2];
  TensorView views[2];
  for (int i = 0; i < 2; ++i) {
    // The batch dimensions broadcast.
    Dims shape = out.spec->shape;
    shape[rank - 2] = i == 0 ? pairs.n : pairs.m;
    shape[rank - 1] = pairs.d;
    specs[i] = ContiguousSpec(out.spec->dtype, shape);
    views[i] = {ScratchOf<char>(context, specs[i].nbytes()), &specs[i]};
    if (views[i].data == nullptr) return NoScratch();
    absl::Status s = CudaCopy(context, inputs[i], views[i]);
    if (!s.ok()) return s;
  }
  return DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return pairs.order == Order::kInfinity
               ? Distances<LargestTerm, T>(context, pairs, views[0].as<T>(),
                                           views[1].as<T>(), out)
               : Distances<SumTerms, T>(context, pairs, views[0].as<T>(),
                                        views[1].as<T>(), out);
  });
}

}  // namespace holdfast::cuda
