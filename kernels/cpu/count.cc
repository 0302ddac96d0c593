// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// bincount: counts, how many of which the elements tell.
#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/count_bins.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/load_once.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

// Every integer type, as inference lets through.
template <typename F>
absl::Status DispatchInteger(DType dtype, F&& fn) {
  if (dtype == DType::kUInt8) return fn(TypeTag<uint8_t>{});
  if (dtype == DType::kInt8) return fn(TypeTag<int8_t>{});
  if (dtype == DType::kInt16) return fn(TypeTag<int16_t>{});
  return DispatchIndex(dtype, fn);
}

}  // namespace

HOLDFAST_CPU_SIZES(bincount) {
  const TensorSpec& spec = *inputs[0].spec;
  const int64_t n = spec.numel();
  int64_t low = 0, high = -1;
  absl::Status s = DispatchInteger(spec.dtype, [&](auto tag) -> absl::Status {
    using I = typename decltype(tag)::type;
    const I* p = inputs[0].as<I>();
    const int64_t stride = spec.strides[0];
    for (int64_t i = 0; i < n; ++i) {
      const int64_t value = LoadOnce(p + i * stride);
      low = std::min(low, value);
      high = std::max(high, value);
    }
    return absl::OkStatus();
  });
  if (!s.ok()) return s;
  if (low < 0 || high == std::numeric_limits<int64_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[bincount] bincount only supports 1-d non-negative integral inputs. "
        "Got ",
        low < 0 ? low : high, "."));
  }
  sizes[0] = std::max(high + 1, attrs.Int("minlength"));
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(bincount) {
  const TensorView& out = outputs[0];
  const int64_t bins = out.spec->numel();
  if (bins == 0) return absl::OkStatus();
  TensorSpec spec, weight_spec;
  TensorView view, weights;
  absl::Status s =
      MakeContiguous(context, inputs[0], inputs[0].spec->dtype, &spec, &view);
  if (!s.ok()) return s;
  const int64_t n = inputs[0].spec->numel();
  double* sums = nullptr;
  if (inputs[1].present()) {
    s = MakeContiguous(context, inputs[1], DType::kFloat64, &weight_spec,
                       &weights);
    if (!s.ok()) return s;
    sums = out.spec->dtype == DType::kFloat64
               ? out.as<double>()
               : static_cast<double*>(context.Scratch(bins * sizeof(double)));
    if (sums == nullptr) {
      return absl::ResourceExhaustedError("scratch memory for counting");
    }
  }
  return DispatchInteger(view.spec->dtype, [&](auto tag) -> absl::Status {
    using I = typename decltype(tag)::type;
    const I* values = view.as<I>();
    if (sums == nullptr) {
      return CountBins<int64_t>(context, values, n, 0, bins, out.as<int64_t>(),
                                [](int64_t& count, int64_t) { ++count; });
    }
    const double* weight = weights.as<double>();
    absl::Status status = CountBins<double>(
        context, values, n, 0, bins, sums,
        [weight](double& sum, int64_t i) { sum += weight[i]; });
    if (status.ok() && out.spec->dtype != DType::kFloat64) {
      std::copy(sums, sums + bins, out.as<float>());
    }
    return status;
  });
}

}  // namespace holdfast::cpu
