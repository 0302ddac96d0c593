// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// cumsum, cumprod, logcumsumexp, linear_scan, cummax, cummin: results that run
// along one dimension. Long runs are cut into segments: their totals first,
// then the totals before each, then the results.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"

namespace holdfast::cuda {
namespace {

// A contiguous tensor seen as [outer, n, inner]; runs go along n.
struct ScanShape {
  int64_t outer = 1, n = 1, inner = 1;
  int64_t segments = 1, length = 0;  // of a run

  int64_t runs() const { return outer * inner; }
  HOLDFAST_HD int64_t Start(int64_t run) const {
    return run / inner * n * inner + run % inner;
  }
};

absl::StatusOr<ScanShape> MakeScanShape(const TensorSpec& spec, int64_t dim) {
  absl::StatusOr<int> d = NormalizeDim(dim, spec.rank());
  if (!d.ok()) return d.status();
  ScanShape shape;
  for (int i = 0; i < spec.rank(); ++i) {
    (i < *d ? shape.outer : i == *d ? shape.n : shape.inner) *= spec.shape[i];
  }
  // Enough threads for the device, and segments long enough to pay.
  const int64_t wanted = (1 << 16) / std::max<int64_t>(shape.runs(), 1);
  shape.segments = std::clamp<int64_t>(std::min(wanted, shape.n / 32), 1, 4096);
  shape.length = (shape.n + shape.segments - 1) / shape.segments;
  return shape;
}

// Runs S over each run: State Init(), Combine(earlier, later), One(i) of the
// i-th element of a tensor, and Write(i, state). `reverse`: from the other end.
template <typename S>
absl::Status RunScan(KernelContext& context, const ScanShape& shape,
                     bool reverse, S scan) {
  using State = typename S::State;
  const int64_t runs = shape.runs(), segments = shape.segments;
  const auto element = [=] HOLDFAST_LAMBDA(int64_t run, int64_t j) {
    return shape.Start(run) + (reverse ? shape.n - 1 - j : j) * shape.inner;
  };
  const auto end_of = [=] HOLDFAST_LAMBDA(int64_t segment) {
    const int64_t end = (segment + 1) * shape.length;
    return end < shape.n ? end : shape.n;
  };
  State* const totals =
      static_cast<State*>(context.Scratch(runs * segments * sizeof(State)));
  if (totals == nullptr) return NoScratch();
  absl::Status s;
  if (segments > 1) {
    s = ForEach(context, runs * segments, [=] HOLDFAST_LAMBDA(int64_t item) {
      const int64_t run = item % runs, segment = item / runs;
      State state = S::Init();
      for (int64_t j = segment * shape.length; j < end_of(segment); ++j) {
        state = S::Combine(state, scan.One(element(run, j)));
      }
      totals[item] = state;
    });
    if (!s.ok()) return s;
    // Each run's totals become what comes before the segment.
    s = ForEach(context, runs, [=] HOLDFAST_LAMBDA(int64_t run) {
      State before = S::Init();
      for (int64_t segment = 0; segment < segments; ++segment) {
        const State total = totals[segment * runs + run];
        totals[segment * runs + run] = before;
        before = S::Combine(before, total);
      }
    });
    if (!s.ok()) return s;
  }
  return ForEach(context, runs * segments, [=] HOLDFAST_LAMBDA(int64_t item) {
    const int64_t run = item % runs, segment = item / runs;
    State state = segments > 1 ? totals[item] : S::Init();
    for (int64_t j = segment * shape.length; j < end_of(segment); ++j) {
      const int64_t at = element(run, j);
      state = S::Combine(state, scan.One(at));
      scan.Write(at, j, state);
    }
  });
}

template <typename T>
using Running = std::conditional_t<
    kIsComplex<T>, Complex<double>,
    std::conditional_t<std::is_floating_point_v<T>, double, int64_t>>;

template <typename T>
HOLDFAST_HD Running<T> Widen(T x) {
  if constexpr (kIsComplex<T>) {
    return {static_cast<double>(x.real), static_cast<double>(x.imag)};
  } else {
    return static_cast<Running<T>>(x);
  }
}
template <typename T>
HOLDFAST_HD T Narrow(Running<T> x) {
  if constexpr (kIsComplex<T>) {
    using Part = decltype(T::real);
    return {static_cast<Part>(x.real), static_cast<Part>(x.imag)};
  } else {
    return elementwise::Cast<T>(x);
  }
}

template <typename T>
struct SumScan {
  using State = Running<T>;
  const T* in;
  T* out;
  static HOLDFAST_HD State Init() { return 0; }
  static HOLDFAST_HD State Combine(State a, State b) {
    return elementwise::Add(a, b);
  }
  HOLDFAST_HD State One(int64_t i) const { return Widen(LoadStored<T>(in, i)); }
  HOLDFAST_HD void Write(int64_t i, int64_t, State state) const {
    out[i] = Narrow<T>(state);
  }
};

template <typename T>
struct ProductScan : SumScan<T> {
  using State = Running<T>;
  static HOLDFAST_HD State Init() { return 1; }
  static HOLDFAST_HD State Combine(State a, State b) {
    return elementwise::Multiply(a, b);
  }
};

// log(sum(exp)) as a maximum and the sum of exponentials below it.
template <typename T>
struct LogSumScan {
  struct State {
    double high, sum;
  };
  const T* in;
  T* out;
  static HOLDFAST_HD State Init() {
    return {-std::numeric_limits<double>::infinity(), 0};
  }
  // Two infinities of one sign differ by NaN, and by nothing here.
  static HOLDFAST_HD double Below(double x, double high) {
    return x == high ? 1.0 : std::exp(x - high);
  }
  static HOLDFAST_HD State Combine(State a, State b) {
    if (a.sum == 0) return b;
    if (b.sum == 0) return a;
    const double high = b.high > a.high ? b.high : a.high;
    return {high, a.sum * Below(a.high, high) + b.sum * Below(b.high, high)};
  }
  HOLDFAST_HD State One(int64_t i) const {
    return {static_cast<double>(in[i]), 1};
  }
  HOLDFAST_HD void Write(int64_t i, int64_t, State state) const {
    out[i] = static_cast<T>(state.high + std::log(state.sum));
  }
};

// y[i] = x[i] + a[i] y[i - 1]: maps y -> offset + factor y, put together.
template <typename T>
struct LinearScan {
  struct State {
    Running<T> factor, offset;
    int64_t count;  // elements in it; 0: the map that changes nothing
  };
  const T* in;
  const T* factors;
  T* out;
  static HOLDFAST_HD State Init() { return {1, 0, 0}; }
  static HOLDFAST_HD State Combine(State a, State b) {
    // What comes first has nothing to multiply, not even NaN.
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    return {a.factor * b.factor, b.offset + b.factor * a.offset,
            a.count + b.count};
  }
  HOLDFAST_HD State One(int64_t i) const {
    return {Widen(factors[i]), Widen(in[i]), 1};
  }
  HOLDFAST_HD void Write(int64_t i, int64_t, State state) const {
    out[i] = Narrow<T>(state.offset);
  }
};

// The extreme so far and the last position that has it. NaN beats everything.
template <typename T, bool kMax>
struct ExtremeScan {
  struct State {
    T value;
    int64_t index;  // of the element in memory; -1: nothing yet
  };
  const T* in;
  T* values;
  int64_t* indices;
  int64_t n, inner;
  static HOLDFAST_HD State Init() { return {T(0), -1}; }
  static HOLDFAST_HD State Combine(State a, State b) {
    if (a.index < 0) return b;
    if (b.index < 0) return a;
    if (b.value != b.value) return b;
    if (a.value != a.value) return a;
    return (kMax ? b.value >= a.value : b.value <= a.value) ? b : a;
  }
  HOLDFAST_HD State One(int64_t i) const { return {LoadStored<T>(in, i), i}; }
  HOLDFAST_HD void Write(int64_t i, int64_t, State state) const {
    values[i] = state.value;
    indices[i] = state.index / inner % n;
  }
};

// The input, contiguous and of the output's type, and the shape of the scan.
absl::Status Prepare(KernelContext& context, const Attrs& attrs,
                     const TensorView& input, const TensorView& output,
                     TensorSpec* spec, TensorView* in, ScanShape* shape) {
  absl::Status s = MakeContiguous(context, input, output.spec->dtype, spec, in);
  if (!s.ok()) return s;
  absl::StatusOr<ScanShape> made =
      MakeScanShape(*output.spec, attrs.Int("dim"));
  if (!made.ok()) return made.status();
  *shape = *made;
  return absl::OkStatus();
}

template <template <typename> class Scan>
absl::Status Simple(KernelContext& context, const Attrs& attrs,
                    const TensorView& input, const TensorView& output) {
  if (output.spec->numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView in;
  ScanShape shape;
  absl::Status s = Prepare(context, attrs, input, output, &spec, &in, &shape);
  if (!s.ok()) return s;
  return DispatchWithComplex(output.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    Scan<T> scan;
    scan.in = in.as<T>();
    scan.out = output.as<T>();
    return RunScan(context, shape, false, scan);
  });
}

template <bool kMax>
absl::Status Extremes(KernelContext& context, const Attrs& attrs,
                      const TensorView& input,
                      absl::Span<const TensorView> outputs) {
  if (outputs[0].spec->numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView in;
  ScanShape shape;
  absl::Status s =
      Prepare(context, attrs, input, outputs[0], &spec, &in, &shape);
  if (!s.ok()) return s;
  return DispatchDType(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return RunScan(
        context, shape, false,
        ExtremeScan<T, kMax>{in.as<T>(), outputs[0].as<T>(),
                             outputs[1].as<int64_t>(), shape.n, shape.inner});
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(cumsum) {
  return Simple<SumScan>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(cumprod) {
  return Simple<ProductScan>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(logcumsumexp) {
  if (outputs[0].spec->numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView in;
  ScanShape shape;
  absl::Status s =
      Prepare(context, attrs, inputs[0], outputs[0], &spec, &in, &shape);
  if (!s.ok()) return s;
  return DispatchFloat(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return RunScan(context, shape, false,
                   LogSumScan<T>{in.as<T>(), outputs[0].as<T>()});
  });
}
HOLDFAST_CUDA_KERNEL(linear_scan) {
  if (outputs[0].spec->numel() == 0) return absl::OkStatus();
  TensorSpec spec, factor_spec;
  TensorView in, factors;
  ScanShape shape;
  absl::Status s =
      Prepare(context, attrs, inputs[0], outputs[0], &spec, &in, &shape);
  if (s.ok()) {
    s = MakeContiguous(context, inputs[1], outputs[0].spec->dtype, &factor_spec,
                       &factors);
  }
  if (!s.ok()) return s;
  return DispatchField(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return RunScan(
        context, shape, attrs.Bool("reverse"),
        LinearScan<T>{in.as<T>(), factors.as<T>(), outputs[0].as<T>()});
  });
}
HOLDFAST_CUDA_KERNEL(cummax) {
  return Extremes<true>(context, attrs, inputs[0], outputs);
}
HOLDFAST_CUDA_KERNEL(cummin) {
  return Extremes<false>(context, attrs, inputs[0], outputs);
}

}  // namespace holdfast::cuda
