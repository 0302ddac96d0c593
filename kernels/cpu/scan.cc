// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// cumsum, cumprod, logcumsumexp, linear_scan.
#include "kernels/cpu/scan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "ops/complex.h"

namespace holdfast::cpu {
namespace {

// Floats run in double; integers modulo 2^64; bool as "or" and "and".
template <typename T>
using Running = std::conditional_t<
    kIsComplex<T>, Complex<double>,
    std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>>;

template <typename T>
HOLDFAST_INLINE Running<T> Widen(T x) {
  if constexpr (kIsComplex<T>) {
    return {static_cast<double>(x.real), static_cast<double>(x.imag)};
  } else {
    return static_cast<Running<T>>(x);
  }
}
template <typename T>
HOLDFAST_INLINE T Narrow(Running<T> x) {
  if constexpr (kIsComplex<T>) {
    using Part = decltype(T::real);
    return {static_cast<Part>(x.real), static_cast<Part>(x.imag)};
  } else {
    return static_cast<T>(x);
  }
}

template <typename T>
struct AddStep {
  static constexpr bool kHas = true;
  using State = Running<T>;
  static HOLDFAST_INLINE State Init() { return 0; }
  static HOLDFAST_INLINE void Run(State& sum, T x) {
    if constexpr (std::is_same_v<T, bool>) {
      sum |= x;
    } else {
      sum = sum + Widen(x);
    }
  }
  static HOLDFAST_INLINE T Result(State sum) { return Narrow<T>(sum); }
};

template <typename T>
struct MulStep {
  static constexpr bool kHas = true;
  using State = Running<T>;
  static HOLDFAST_INLINE State Init() { return 1; }
  static HOLDFAST_INLINE void Run(State& product, T x) {
    product = product * Widen(x);
  }
  static HOLDFAST_INLINE T Result(State product) { return Narrow<T>(product); }
};

// log(sum(exp)) as a maximum and the sum of exponentials below it, so that
// nothing overflows.
template <typename T>
struct LogAddStep {
  static constexpr bool kHas = std::is_floating_point_v<T>;
  struct State {
    double high, sum;
  };
  static HOLDFAST_INLINE State Init() {
    return {-std::numeric_limits<double>::infinity(), 0};
  }
  static HOLDFAST_INLINE void Run(State& state, T value) {
    const double x = static_cast<double>(value);
    if (x == state.high) {  // also two infinities, whose difference is NaN
      state.sum += 1;
    } else if (x > state.high) {
      state.sum = state.sum * std::exp(state.high - x) + 1;
      state.high = x;
    } else {
      state.sum += std::exp(x - state.high);  // NaN stays
    }
  }
  static HOLDFAST_INLINE T Result(const State& state) {
    return static_cast<T>(state.high + std::log(state.sum));
  }
};

// `n` steps of `runs` times `cols` runs. carried: null for whole runs, else the
// states of the columns of one, which go on from there.
template <typename T, typename Step>
struct ScanBody {
  using State = typename Step::State;

  static HOLDFAST_INLINE int Run(const T* in, T* out, int64_t n, int64_t stride,
                                 int64_t cols, int64_t runs, State* carried) {
    for (int64_t i = 0; i < runs; ++i) {
      const int64_t at = i * n * stride;
      One(in + at, out + at, n, stride, cols, carried);
    }
    return 0;
  }
  static HOLDFAST_INLINE void One(const T* in, T* out, int64_t n,
                                  int64_t stride, int64_t cols,
                                  State* carried) {
    if (cols == 1) {
      State state = carried == nullptr ? Step::Init() : *carried;
      for (int64_t i = 0; i < n; ++i) {
        Step::Run(state, LoadElement(in + i * stride));
        out[i * stride] = Step::Result(state);
      }
      if (carried != nullptr) *carried = state;
      return;
    }
    State states[kScanCols];
    for (int64_t j = 0; j < cols; ++j) {
      states[j] = carried == nullptr ? Step::Init() : carried[j];
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        Step::Run(states[j], LoadElement(in + i * stride + j));
        out[i * stride + j] = Step::Result(states[j]);
      }
    }
    if (carried != nullptr) std::copy(states, states + cols, carried);
  }
};

// Calls fn(shape, input) with the input contiguous and of the output's type.
template <typename F>
absl::Status WithScan(KernelContext& context, const Attrs& attrs,
                      const TensorView& input, const TensorView& output,
                      F&& fn) {
  if (output.spec->numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView view;
  absl::Status s =
      MakeContiguous(context, input, output.spec->dtype, &spec, &view);
  if (!s.ok()) return s;
  absl::StatusOr<ScanShape> shape =
      MakeScanShape(*output.spec, attrs.Int("dim"));
  if (!shape.ok()) return shape.status();
  return fn(*shape, view);
}

// Scans input 0, converted to the output's type.
template <template <typename> class Step>
struct Scan {
  KernelContext& context;
  const ScanShape& shape;
  const TensorView &in, &out;

  template <typename T>
  absl::Status operator()(TypeTag<T>) const {
    if constexpr (Step<T>::kHas) {
      using State = typename Step<T>::State;
      const auto scan = [&](int64_t at, int64_t n, int64_t cols, int64_t runs,
                            State* carried) {
        Vectorised<ScanBody<T, Step<T>>>(static_cast<const T*>(in.as<T>() + at),
                                         out.as<T>() + at, n, shape.inner, cols,
                                         runs, carried);
      };
      ForEachScan(context, shape, [&](int64_t at, int64_t cols, int64_t runs) {
        const int64_t piece = ScanPiece(cols);
        if (shape.n <= piece) {
          return scan(at, shape.n, cols, runs, static_cast<State*>(nullptr));
        }
        for (; runs > 0; --runs, at += shape.n * shape.inner) {
          State states[kScanCols];
          std::fill(states, states + cols, Step<T>::Init());
          SerialFor(context, shape.n, piece, [&](int64_t begin, int64_t end) {
            scan(at + begin * shape.inner, end - begin, cols, 1, states);
          });
        }
      });
      return absl::OkStatus();
    }
    return UnsupportedDType<absl::Status>();
  }
};

template <template <typename> class Step>
absl::Status RunScan(KernelContext& context, const Attrs& attrs,
                     const TensorView& input, const TensorView& out) {
  return WithScan(context, attrs, input, out,
                  [&](const ScanShape& shape, const TensorView& in) {
                    return DispatchWithComplex(
                        out.spec->dtype, Scan<Step>{context, shape, in, out});
                  });
}

// y[i] = x[i] + a[i] * y[i - 1] for the steps [begin, end) of n; from the other
// end with `reverse`. `states`: of the columns, zero before the first step.
template <typename T>
struct LinearBody {
  static HOLDFAST_INLINE int Run(const T* x, const T* a, T* y, int64_t begin,
                                 int64_t end, int64_t n, int64_t stride,
                                 int64_t cols, bool reverse,
                                 Running<T>* carried) {
    Running<T> states[kScanCols];
    std::copy(carried, carried + cols, states);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = (reverse ? n - 1 - i : i) * stride;
      for (int64_t j = 0; j < cols; ++j) {
        // The first coefficient has nothing to multiply, not even NaN.
        const Running<T> before =
            i == 0 ? Running<T>(0) : Widen(a[at + j]) * states[j];
        states[j] = Widen(x[at + j]) + before;
        y[at + j] = Narrow<T>(states[j]);
      }
    }
    std::copy(states, states + cols, carried);
    return 0;
  }
};

}  // namespace

HOLDFAST_CPU_KERNEL(cumsum) {
  return RunScan<AddStep>(context, attrs, inputs[0], outputs[0]);
}

HOLDFAST_CPU_KERNEL(cumprod) {
  return RunScan<MulStep>(context, attrs, inputs[0], outputs[0]);
}

HOLDFAST_CPU_KERNEL(logcumsumexp) {
  return RunScan<LogAddStep>(context, attrs, inputs[0], outputs[0]);
}

HOLDFAST_CPU_KERNEL(linear_scan) {
  const TensorView& out = outputs[0];
  TensorSpec spec;
  TensorView factors;
  absl::Status s =
      MakeContiguous(context, inputs[1], out.spec->dtype, &spec, &factors);
  if (!s.ok()) return s;
  const bool reverse = attrs.Bool("reverse");
  return WithScan(
      context, attrs, inputs[0], out,
      [&](const ScanShape& shape, const TensorView& in) {
        return DispatchField(out.spec->dtype, [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          ForEachScan(
              context, shape, [&](int64_t at, int64_t cols, int64_t runs) {
                for (; runs > 0; --runs, at += shape.n * shape.inner) {
                  Running<T> states[kScanCols];
                  std::fill(states, states + cols, Running<T>(0));
                  SerialFor(context, shape.n, ScanPiece(cols),
                            [&](int64_t begin, int64_t end) {
                              Vectorised<LinearBody<T>>(
                                  static_cast<const T*>(in.as<T>() + at),
                                  static_cast<const T*>(factors.as<T>() + at),
                                  out.as<T>() + at, begin, end, shape.n,
                                  shape.inner, cols, reverse, states + 0);
                            });
                }
              });
          return absl::OkStatus();
        });
      });
}

}  // namespace holdfast::cpu
