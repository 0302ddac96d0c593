// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax, log_softmax and their gradients: a group of threads for each row
// along dim, which it keeps in registers, or else reads twice.
#include <cmath>
#include <limits>

#include "kernels/cuda/combine.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/group.h"
#include "kernels/cuda/softmax_rows.h"

namespace holdfast::cuda {
namespace {

// What softmax (kLog: its logarithm) makes of a row in `in`.
template <typename S, int kWidth, int kPart, bool kLog>
struct HeldSoftmax {
  using T = ComputeOf<S>;

  SoftmaxRows rows;
  const S* in;
  S* out;

  HOLDFAST_HD void operator()(const Group& group, int64_t r) const {
    const int64_t start = rows.Start(r), apart = rows.apart();
    HeldRow<S, kWidth, kPart> row(in + start, static_cast<int>(rows.n()),
                                  group.rank, group.size, apart);
    T largest = -std::numeric_limits<T>::infinity();
    row.ForEachPack([&](int p, int) {
      HOLDFAST_UNROLL
      for (T v : row.v[p]) largest = LargerOf()(largest, v);
    });
    largest = group.Reduce(largest, LargerOf());
    T sum = 0;
    row.ForEachPack([&](int p, int) {
      HOLDFAST_UNROLL
      for (T& v : row.v[p]) {
        const T power = std::exp(v - largest);
        if (!kLog) v = power;
        sum += power;
      }
    });
    sum = group.Reduce(sum, SumTwo());
    const T scale = kLog ? largest + std::log(sum) : T(1) / sum;
    row.ForEachPack([&](int p, int i) {
      HOLDFAST_UNROLL
      for (T& v : row.v[p]) v = kLog ? v - scale : v * scale;
      StorePack<kWidth>(out + start + i * apart, row.v[p]);
    });
  }
};

template <typename S, int kWidth, bool kLog>
struct WalkedSoftmax {
  using T = ComputeOf<S>;

  SoftmaxRows rows;
  WalkedRow<S, kWidth> walk;
  const S* in;
  S* out;

  HOLDFAST_HD void operator()(const Group& group, int64_t r) const {
    const int64_t start = rows.Start(r);
    const S* const from[] = {in + start};
    ExpSum<T> all;
    walk.ForEach(group, from, [&](const auto& v) { all.Take(v[0]); });
    all = group.Reduce(all, CombineExpSums());
    const T largest = all.largest;
    const T scale = kLog ? largest + std::log(all.sum) : T(1) / all.sum;
    walk.Map(group, from, out + start, [&](T(&v)[1][kWidth]) {
      HOLDFAST_UNROLL
      for (T& x : v[0]) x = kLog ? x - scale : std::exp(x - largest) * scale;
    });
  }
};

// Of one element's gradient g and result y: what a row sums, and the gradient
// of the input given that sum.
template <bool kLog, typename T>
HOLDFAST_HD T Term(T g, T y) {
  return kLog ? g : g * y;
}
template <bool kLog, typename T>
HOLDFAST_HD T InputGradient(T g, T y, T sum) {
  return kLog ? g - std::exp(y) * sum : y * (g - sum);
}

template <typename S, int kWidth, int kPart, bool kLog>
struct HeldGradient {
  using T = ComputeOf<S>;

  SoftmaxRows rows;
  const S *grad, *result;
  S* out;

  HOLDFAST_HD void operator()(const Group& group, int64_t r) const {
    const int64_t start = rows.Start(r), apart = rows.apart();
    const int n = static_cast<int>(rows.n());
    HeldRow<S, kWidth, kPart> g(grad + start, n, group.rank, group.size, apart);
    const HeldRow<S, kWidth, kPart> y(result + start, n, group.rank, group.size,
                                      apart);
    T sum = 0;
    g.ForEachPack([&](int p, int) {
      HOLDFAST_UNROLL
      for (int e = 0; e < kWidth; ++e) sum += Term<kLog>(g.v[p][e], y.v[p][e]);
    });
    sum = group.Reduce(sum, SumTwo());
    g.ForEachPack([&](int p, int i) {
      HOLDFAST_UNROLL
      for (int e = 0; e < kWidth; ++e) {
        g.v[p][e] = InputGradient<kLog>(g.v[p][e], y.v[p][e], sum);
      }
      StorePack<kWidth>(out + start + i * apart, g.v[p]);
    });
  }
};

template <typename S, int kWidth, bool kLog>
struct WalkedGradient {
  using T = ComputeOf<S>;

  SoftmaxRows rows;
  WalkedRow<S, kWidth> walk;
  const S *grad, *result;
  S* out;

  HOLDFAST_HD void operator()(const Group& group, int64_t r) const {
    const int64_t start = rows.Start(r);
    const S* const from[] = {grad + start, result + start};
    T sum = 0;
    walk.ForEach(group, from, [&](const auto& v) {
      HOLDFAST_UNROLL
      for (size_t e = 0; e < std::size(v[0]); ++e) {
        sum += Term<kLog>(v[0][e], v[1][e]);
      }
    });
    sum = group.Reduce(sum, SumTwo());
    walk.Map(group, from, out + start, [&](T(&v)[2][kWidth]) {
      HOLDFAST_UNROLL
      for (int e = 0; e < kWidth; ++e) {
        v[0][e] = InputGradient<kLog>(v[0][e], v[1][e], sum);
      }
    });
  }
};

template <typename S, int kWidth, bool kLog>
absl::Status RunForward(KernelContext& context, const SoftmaxRows& rows,
                        const TensorView (&views)[2]) {
  const S* const in = views[0].as<S>();
  S* const out = views[1].as<S>();
  using T = ComputeOf<S>;
  if (const int group = rows.held_group<T>(); group != 0) {
    return DispatchHeld<T>(rows.n(), group, [&](auto part) -> absl::Status {
      return ForEachRow(context, rows.rows(), group,
                        HeldSoftmax<S, kWidth, part(), kLog>{rows, in, out});
    });
  }
  return ForEachRow(context, rows.rows(), rows.walking_group(),
                    WalkedSoftmax<S, kWidth, kLog>{
                        rows, WalkedRow<S, kWidth>(rows), in, out});
}

template <typename S, int kWidth, bool kLog>
absl::Status RunBackward(KernelContext& context, const SoftmaxRows& rows,
                         const TensorView (&views)[3]) {
  const S *const grad = views[0].as<S>(), *const result = views[1].as<S>();
  S* const out = views[2].as<S>();
  using T = ComputeOf<S>;
  if (const int group = rows.held_group<T>(); group != 0) {
    return DispatchHeld<T>(rows.n(), group, [&](auto part) -> absl::Status {
      return ForEachRow(
          context, rows.rows(), group,
          HeldGradient<S, kWidth, part(), kLog>{rows, grad, result, out});
    });
  }
  return ForEachRow(context, rows.rows(), rows.walking_group(),
                    WalkedGradient<S, kWidth, kLog>{
                        rows, WalkedRow<S, kWidth>(rows), grad, result, out});
}

template <bool kLog, typename S, int kWidth>
absl::Status RunRows(KernelContext& context, const SoftmaxRows& rows,
                     const TensorView (&views)[2]) {
  return RunForward<S, kWidth, kLog>(context, rows, views);
}
template <bool kLog, typename S, int kWidth>
absl::Status RunRows(KernelContext& context, const SoftmaxRows& rows,
                     const TensorView (&views)[3]) {
  return RunBackward<S, kWidth, kLog>(context, rows, views);
}

// A view that begins where packs do: itself, or scratch memory, which is the
// view's elements if `load`.
absl::Status MakeAligned(KernelContext& context, bool load, TensorView* view) {
  if (Aligned(view->data)) return absl::OkStatus();
  const TensorView given = *view;
  view->data = ScratchOf<char>(context, given.spec->nbytes());
  if (view->data == nullptr) return NoScratch();
  return load ? CudaCopy(context, given, *view) : absl::OkStatus();
}

// Softmax of one input, or the gradient of two.
template <bool kLog, size_t kInputs>
absl::Status Softmax(KernelContext& context, const Attrs& attrs,
                     absl::Span<const TensorView> inputs,
                     const TensorView& output) {
  const TensorSpec& spec = *output.spec;
  if (spec.numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), spec.rank());
  if (!dim.ok()) return dim.status();
  int64_t outer = 1, n = 1, inner = 1;
  for (int d = 0; d < spec.rank(); ++d) {
    (d < *dim ? outer : d == *dim ? n : inner) *= spec.shape[d];
  }
  const SoftmaxRows rows(outer, n, inner);
  ContiguousOperands<kInputs> operands;
  absl::Status s = operands.Make(context, inputs, spec.dtype);
  if (!s.ok()) return s;
  return DispatchStoredFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    const bool packed = rows.packed<S>();
    TensorView views[kInputs + 1];
    absl::Status s;
    for (size_t i = 0; i <= kInputs && s.ok(); ++i) {
      views[i] = i < kInputs ? operands.views[i] : output;
      if (packed) s = MakeAligned(context, /*load=*/i < kInputs, &views[i]);
    }
    if (!s.ok()) return s;
    s = packed ? RunRows<kLog, S, kPackWidth<S>>(context, rows, views)
               : RunRows<kLog, S, 1>(context, rows, views);
    if (!s.ok() || views[kInputs].data == output.data) return s;
    return CudaCopy(context, views[kInputs], output);
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(softmax) {
  return Softmax<false, 1>(context, attrs, inputs, outputs[0]);
}
HOLDFAST_CUDA_KERNEL(log_softmax) {
  return Softmax<true, 1>(context, attrs, inputs, outputs[0]);
}
HOLDFAST_CUDA_KERNEL(softmax_backward) {
  return Softmax<false, 2>(context, attrs, inputs, outputs[0]);
}
HOLDFAST_CUDA_KERNEL(log_softmax_backward) {
  return Softmax<true, 2>(context, attrs, inputs, outputs[0]);
}

}  // namespace holdfast::cuda
