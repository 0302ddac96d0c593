// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// cumsum, cumprod, logcumsumexp, linear_scan.
#include "kernels/cpu/scan.h"

#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

// Floats run in double; integers modulo 2^64; bool as "or" and "and".
template <typename T>
using Running =
    std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <typename T>
struct AddStep {
  static constexpr bool kHas = true;
  using State = Running<T>;
  static HOLDFAST_INLINE State Init() { return 0; }
  static HOLDFAST_INLINE void Run(State& sum, T x) {
    if constexpr (std::is_same_v<T, bool>) {
      sum |= x;
    } else {
      sum += static_cast<State>(x);
    }
  }
  static HOLDFAST_INLINE T Result(State sum) { return static_cast<T>(sum); }
};

template <typename T>
struct MulStep {
  static constexpr bool kHas = true;
  using State = Running<T>;
  static HOLDFAST_INLINE State Init() { return 1; }
  static HOLDFAST_INLINE void Run(State& product, T x) {
    product *= static_cast<State>(x);
  }
  static HOLDFAST_INLINE T Result(State product) {
    return static_cast<T>(product);
  }
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

template <typename T, typename Step>
struct ScanBody {
  static HOLDFAST_INLINE int Run(const T* in, T* out, int64_t n, int64_t stride,
                                 int64_t cols, int64_t runs) {
    for (int64_t i = 0; i < runs; ++i) {
      const int64_t at = i * n * stride;
      One(in + at, out + at, n, stride, cols);
    }
    return 0;
  }
  static HOLDFAST_INLINE void One(const T* in, T* out, int64_t n,
                                  int64_t stride, int64_t cols) {
    if (cols == 1) {
      typename Step::State state = Step::Init();
      for (int64_t i = 0; i < n; ++i) {
        Step::Run(state, LoadElement(in + i * stride));
        out[i * stride] = Step::Result(state);
      }
      return;
    }
    typename Step::State states[kScanCols];
    for (int64_t j = 0; j < cols; ++j) states[j] = Step::Init();
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        Step::Run(states[j], LoadElement(in + i * stride + j));
        out[i * stride + j] = Step::Result(states[j]);
      }
    }
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
      ForEachScan(context, shape, [&](int64_t at, int64_t cols, int64_t runs) {
        Vectorised<ScanBody<T, Step<T>>>(static_cast<const T*>(in.as<T>() + at),
                                         out.as<T>() + at, shape.n, shape.inner,
                                         cols, runs);
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
                    return DispatchDType(out.spec->dtype,
                                         Scan<Step>{context, shape, in, out});
                  });
}

// y[i] = x[i] + a[i] * y[i - 1]; from the other end with `reverse`.
template <typename T>
struct LinearBody {
  static HOLDFAST_INLINE int Run(const T* x, const T* a, T* y, int64_t n,
                                 int64_t stride, int64_t cols, bool reverse) {
    double states[kScanCols];
    for (int64_t j = 0; j < cols; ++j) states[j] = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = (reverse ? n - 1 - i : i) * stride;
      for (int64_t j = 0; j < cols; ++j) {
        // The first coefficient has nothing to multiply, not even NaN.
        const double carried = i == 0 ? 0.0 : a[at + j] * states[j];
        states[j] = x[at + j] + carried;
        y[at + j] = static_cast<T>(states[j]);
      }
    }
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
        return DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
          using T = typename decltype(tag)::type;
          ForEachScan(
              context, shape, [&](int64_t at, int64_t cols, int64_t runs) {
                for (; runs > 0; --runs, at += shape.n * shape.inner) {
                  Vectorised<LinearBody<T>>(
                      static_cast<const T*>(in.as<T>() + at),
                      static_cast<const T*>(factors.as<T>() + at),
                      out.as<T>() + at, shape.n, shape.inner, cols, reverse);
                }
              });
          return absl::OkStatus();
        });
      });
}

}  // namespace holdfast::cpu
