// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops on vectors that would be many passes of others: cross product, distances.
#include <cmath>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/elementwise.h"

namespace holdfast::cpu {
namespace {

// `view`, repeated to `shape` and contiguous.
absl::Status Repeated(KernelContext& context, const TensorView& view,
                      const Dims& shape, TensorSpec* spec, TensorView* out) {
  if (view.spec->shape == shape && view.spec->contiguous()) {
    *out = view;
    return absl::OkStatus();
  }
  *spec = ContiguousSpec(view.spec->dtype, shape);
  void* memory = context.Scratch(spec->nbytes() + 64);
  if (memory == nullptr) {
    return absl::ResourceExhaustedError("no scratch memory for an operand");
  }
  *out = {memory, spec};
  CopyStrided(context, view, *out);
  return absl::OkStatus();
}

// a b - c d; integers wrap.
template <typename T>
HOLDFAST_INLINE T Minor(T a, T b, T c, T d) {
  using elementwise::Multiply;
  return elementwise::Subtract(Multiply(a, b), Multiply(c, d));
}

// Kinds of |d|^p summed up, and what the sum becomes.
enum class Order { kZero, kOne, kTwo, kInfinity, kOther };

template <typename T, Order kOrder>
struct DistanceBody {
  static HOLDFAST_INLINE T Run(const T* a, const T* b, int64_t n, T p) {
    // Lanes add up side by side, and in the same order for every row.
    constexpr int kLanes = 64 / sizeof(T);
    T sums[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) Add(a[i + l] - b[i + l], p, &sums[l]);
    }
    for (; i < n; ++i) Add(a[i] - b[i], p, &sums[i % kLanes]);
    T total = sums[0];
    for (int l = 1; l < kLanes; ++l) {
      if constexpr (kOrder == Order::kInfinity) {
        total = Larger(sums[l], total);
      } else {
        total += sums[l];
      }
    }
    if constexpr (kOrder == Order::kTwo) return std::sqrt(total);
    if constexpr (kOrder == Order::kOther) return std::pow(total, T(1) / p);
    return total;
  }

  // NaN stays.
  static HOLDFAST_INLINE T Larger(T a, T b) { return a > b || a != a ? a : b; }

  static HOLDFAST_INLINE void Add(T d, T p, T* sum) {
    if constexpr (kOrder == Order::kZero) {
      *sum += d != T(0) ? T(1) : T(0);
    } else if constexpr (kOrder == Order::kOne) {
      *sum += std::fabs(d);
    } else if constexpr (kOrder == Order::kTwo) {
      *sum += d * d;
    } else if constexpr (kOrder == Order::kInfinity) {
      *sum = Larger(std::fabs(d), *sum);
    } else {
      *sum += std::pow(std::fabs(d), p);
    }
  }
};

template <typename T, Order kOrder>
void Distances(const KernelContext& context, const T* a, const T* b, T* out,
               int64_t batch, int64_t n, int64_t m, int64_t d, double p) {
  const int64_t grain = std::max<int64_t>(1, 16384 / (m * d + 1));
  ParallelFor(context, batch * n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* others = b + i / n * m * d;
      for (int64_t j = 0; j < m; ++j) {
        if (j % 1024 == 1023 && context.Stopped()) return;
        out[i * m + j] = Vectorised<DistanceBody<T, kOrder>>(
            a + i * d, others + j * d, d, static_cast<T>(p));
      }
    }
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(linalg_cross) {
  const TensorView& out = outputs[0];
  const Dims& shape = out.spec->shape;
  if (out.spec->numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), out.spec->rank());
  if (!dim.ok()) return dim.status();
  TensorSpec specs[2];
  TensorView operands[2];
  for (int i = 0; i < 2; ++i) {
    absl::Status s =
        Repeated(context, inputs[i], shape, &specs[i], &operands[i]);
    if (!s.ok()) return s;
  }
  int64_t inner = 1;
  for (int d = *dim + 1; d < out.spec->rank(); ++d) inner *= shape[d];
  return DispatchDType(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return UnsupportedDType<absl::Status>();
    } else {
      const T* a = operands[0].as<T>();
      const T* b = operands[1].as<T>();
      T* c = out.as<T>();
      ParallelFor(context, out.spec->numel() / 3, 16384,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t x = i / inner * 3 * inner + i % inner;
                      const int64_t y = x + inner, z = y + inner;
                      c[x] = Minor(a[y], b[z], a[z], b[y]);
                      c[y] = Minor(a[z], b[x], a[x], b[z]);
                      c[z] = Minor(a[x], b[y], a[y], b[x]);
                    }
                  });
      return absl::OkStatus();
    }
  });
}

HOLDFAST_CPU_KERNEL(linalg_cdist) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  const int rank = out.spec->rank();
  const int64_t n = out.spec->shape[rank - 2], m = out.spec->shape[rank - 1];
  const int64_t d = inputs[0].spec->shape.back();
  TensorSpec specs[2];
  TensorView operands[2];
  for (int i = 0; i < 2; ++i) {
    Dims shape = out.spec->shape;
    shape[rank - 2] = i == 0 ? n : m;
    shape[rank - 1] = d;
    absl::Status s =
        Repeated(context, inputs[i], shape, &specs[i], &operands[i]);
    if (!s.ok()) return s;
  }
  const int64_t batch = out.spec->numel() / (n * m);
  const double p = attrs.Float("p");
  return DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto distances) {
      distances(context, operands[0].as<T>(), operands[1].as<T>(), out.as<T>(),
                batch, n, m, d, p);
    };
    if (p == 0) {
      run(&Distances<T, Order::kZero>);
    } else if (p == 1) {
      run(&Distances<T, Order::kOne>);
    } else if (p == 2) {
      run(&Distances<T, Order::kTwo>);
    } else if (std::isinf(p)) {
      run(&Distances<T, Order::kInfinity>);
    } else {
      run(&Distances<T, Order::kOther>);
    }
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
