// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// cumsum.
#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"

namespace holdfast {
namespace {

// Floats add up in double; integers modulo 2^64; bool as "or".
template <typename T>
using Running =
    std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <typename T>
HOLDFAST_INLINE void Step(Running<T>& sum, const T* in, T* out) {
  sum += static_cast<Running<T>>(LoadElement(in));
  if constexpr (std::is_same_v<T, bool>) {
    *out = sum != 0;
  } else {
    *out = static_cast<T>(sum);
  }
}

constexpr int64_t kScanCols = 256;
template <typename T>
struct ScanColumnsBody {
  static HOLDFAST_INLINE int Run(const T* in, T* out, int64_t n, int64_t stride,
                                 int64_t cols) {
    Running<T> sums[kScanCols] = {};
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        Step<T>(sums[j], in + i * stride + j, out + i * stride + j);
      }
    }
    return 0;
  }
};

}  // namespace

HOLDFAST_CPU_KERNEL(cumsum) {
  const TensorSpec& out_spec = *outputs[0].spec;
  if (out_spec.numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView input;
  absl::Status s =
      MakeContiguous(context, inputs[0], out_spec.dtype, &spec, &input);
  if (!s.ok()) return s;
  absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), out_spec.rank());
  if (!dim.ok()) return dim.status();
  int64_t n = 1, inner = 1;
  for (int d = *dim; d < out_spec.rank(); ++d) {
    (d == *dim ? n : inner) *= out_spec.shape[d];
  }
  const int64_t outer = out_spec.numel() / n / inner;
  return DispatchDType(out_spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* in = input.as<T>();
    T* out = outputs[0].as<T>();
    if (inner == 1) {
      const int64_t grain = std::max<int64_t>(1, 16384 / n);
      ParallelFor(context, outer, grain, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          Running<T> sum = 0;
          for (int64_t j = i * n; j < (i + 1) * n; ++j) {
            Step<T>(sum, in + j, out + j);
          }
        }
      });
      return absl::OkStatus();
    }
    const int64_t tiles = (inner + kScanCols - 1) / kScanCols;
    const int64_t grain = std::max<int64_t>(1, 16384 / (n * kScanCols));
    ParallelFor(context, outer * tiles, grain, [&](int64_t b, int64_t e) {
      for (int64_t u = b; u < e; ++u) {
        const int64_t first = u % tiles * kScanCols;
        const int64_t at = u / tiles * n * inner + first;
        Vectorised<ScanColumnsBody<T>>(in + at, out + at, n, inner,
                                       std::min(kScanCols, inner - first));
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace holdfast
