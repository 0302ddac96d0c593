// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// bincount, run_lengths: counts, how many of which the elements tell.
#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/parallel.h"

namespace holdfast {
namespace {

// Parts of n elements that are counted apart: from the sizes alone, so that
// sums of weights come out equal for every number of threads.
int64_t CountParts(int64_t n, int64_t bins) {
  return std::clamp<int64_t>(std::min(n / 32768, (int64_t{1} << 22) / bins), 1,
                             16);
}

// Acc per bin; add(acc, i) takes in element i.
template <typename Acc, typename I, typename Add>
absl::Status CountInto(KernelContext& context, const I* values, int64_t n,
                       int64_t bins, Acc* counts, const Add& add) {
  const int64_t parts = CountParts(n, bins);
  Acc* all = counts;
  if (parts > 1) {
    all = static_cast<Acc*>(context.Scratch(parts * bins * sizeof(Acc)));
    if (all == nullptr) {
      return absl::ResourceExhaustedError("scratch memory for counting");
    }
  }
  ParallelFor(context, parts, 1, [&](int64_t b, int64_t e) {
    for (int64_t part = b; part < e; ++part) {
      Acc* own = all + part * bins;
      std::fill(own, own + bins, Acc{0});
      const int64_t end = n * (part + 1) / parts;
      for (int64_t i = n * part / parts; i < end; ++i) {
        const auto bin = static_cast<uint64_t>(LoadOnce(values + i));
        // Elements were in range when their maximum was taken.
        if (bin < static_cast<uint64_t>(bins)) add(own[bin], i);
      }
    }
  });
  if (parts == 1) return absl::OkStatus();
  for (int64_t i = 0; i < bins; ++i) {
    Acc total = 0;
    for (int64_t part = 0; part < parts; ++part) total += all[part * bins + i];
    counts[i] = total;
  }
  return absl::OkStatus();
}

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
      return CountInto<int64_t>(context, values, n, bins, out.as<int64_t>(),
                                [](int64_t& count, int64_t) { ++count; });
    }
    const double* weight = weights.as<double>();
    absl::Status status = CountInto<double>(
        context, values, n, bins, sums,
        [weight](double& sum, int64_t i) { sum += weight[i]; });
    if (status.ok() && out.spec->dtype != DType::kFloat64) {
      std::copy(sums, sums + bins, out.as<float>());
    }
    return status;
  });
}

HOLDFAST_CPU_SIZES(run_lengths) {
  const TensorSpec& spec = *inputs[0].spec;
  const bool* p = inputs[0].as<bool>();
  int64_t count = 0;
  for (int64_t i = 0; i < spec.numel(); ++i) {
    count += LoadElement(p + i * spec.strides[0]);
  }
  sizes[0] = count;
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(run_lengths) {
  const TensorSpec& spec = *inputs[0].spec;
  const bool* p = inputs[0].as<bool>();
  const int64_t runs = outputs[0].spec->numel(), n = spec.numel();
  int64_t* out = outputs[0].as<int64_t>();
  // The flags may have changed since they were counted.
  std::fill(out, out + runs, 0);
  int64_t run = -1;
  for (int64_t i = 0; i < n; ++i) {
    run += LoadElement(p + i * spec.strides[0]);
    if (run >= runs) break;
    if (run >= 0) ++out[run];
  }
  return absl::OkStatus();
}

}  // namespace holdfast
