// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d, conv3d and their gradients: by cuDNN where it is there and knows how,
// else as matrix products over unfolded windows, a few samples at a time.
#include <algorithm>

#include "kernels/cuda/columns.h"
#include "kernels/cuda/conv_shape.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/fast_divisor.h"
#include "kernels/cuda/run_products.h"
#include "kernels/cuda/tiles.h"

#if defined(__CUDACC__)
#include "kernels/cuda/dnn_convolution.h"
#include "kernels/cuda/dnn_plans.h"
#endif

namespace holdfast::cuda {
namespace {

constexpr int64_t kColumnBytes = int64_t{256} << 20;  // of unfolded windows

struct Conv : ConvShape {
  // Factors of one output element, and output elements of one channel.
  int64_t k() const { return group_in() * windows.taps(); }
  int64_t l() const { return windows.columns(); }
  // Samples whose columns fit the scratch memory.
  int64_t Chunk(int64_t item) const {
    const int64_t each = std::max<int64_t>(1, groups * k() * l() * item);
    return std::clamp<int64_t>(kColumnBytes / each, 1,
                               std::max<int64_t>(samples, 1));
  }
};

Conv MakeConv(const Attrs& attrs, absl::Span<const int64_t> input,
              absl::Span<const int64_t> weight,
              absl::Span<const int64_t> output) {
  Conv c;
  const int axes = static_cast<int>(weight.size()) - 2;
  c.axes = axes;
  const size_t channel = input.size() - axes - 1;  // no samples: 0
  c.samples = channel == 0 ? 1 : input[0];
  c.in_channels = input[channel];
  c.out_channels = weight[0];
  c.groups = attrs.Int("groups");
  for (int i = 0; i < axes; ++i) {
    WindowAxis& axis = c.windows.axis[3 - axes + i];
    axis.kernel = weight[2 + i];
    axis.stride = attrs.Ints("stride")[i];
    axis.padding = attrs.Ints("padding")[i];
    axis.dilation = attrs.Ints("dilation")[i];
    axis.size = input[channel + 1 + i];
    axis.out = output[channel + 1 + i];
  }
  return c;
}

// A contiguous vector of `n` elements from `first` of `data`'s memory on.
struct Part {
  TensorSpec spec;
  TensorView view;
  Part(const TensorView& data, int64_t first, int64_t n, DType dtype)
      : spec(ContiguousSpec(dtype, {n})), view(AtOffset(data, first, spec)) {}
  Part(const Part&) = delete;
};

absl::Status Unfold(KernelContext& context, const Conv& c, DType dtype,
                    const TensorView& input, int64_t first, int64_t samples,
                    void* columns) {
  return DispatchBits(dtype, [&](auto tag) -> absl::Status {
    using Bits = typename decltype(tag)::type;
    const int64_t planes = samples * c.in_channels;
    return UnfoldPlanes<Bits>(
        context, c.windows, planes,
        input.as<Bits>() + first * c.in_channels * c.windows.plane(),
        static_cast<Bits*>(columns));
  });
}

// Whether cuDNN has taken it.
bool RunDnn([[maybe_unused]] KernelContext& context,
            [[maybe_unused]] ConvPass pass, [[maybe_unused]] const Conv& c,
            [[maybe_unused]] DType dtype,
            [[maybe_unused]] const ConvTensors& tensors) {
#if defined(__CUDACC__)
  CudaLibraries& libraries = Cuda(context).libraries();
  DnnPlans* const plans = libraries.dnn_plans();
  if (plans == nullptr || !IsFloat(dtype) || c.group_in() == 0) {
    return false;
  }
  const uint64_t bits = reinterpret_cast<uintptr_t>(tensors.x) |
                        reinterpret_cast<uintptr_t>(tensors.w) |
                        reinterpret_cast<uintptr_t>(tensors.y) | 16;
  ConvolutionProblem problem;
  problem.pass = pass;
  problem.dtype = dtype;
  problem.shape = c;
  problem.alignment = static_cast<int64_t>(bits & (~bits + 1));
  problem.numerics = libraries.numerics;
  const DnnPointer pointers[] = {{ConvolutionProblem::kX, tensors.x},
                                 {ConvolutionProblem::kW, tensors.w},
                                 {ConvolutionProblem::kY, tensors.y}};
  return plans->Run(problem, pointers, StreamOf(context),
                    [&](size_t bytes) { return context.Scratch(bytes); });
#else
  return false;
#endif
}

// output [samples, channels, ...] += bias [channels], both contiguous.
template <typename S>
struct BiasAdded {
  using Loaded = S;
  WideDivisor channels, inner;
  const S* bias;
  S* output;

  HOLDFAST_HD S Load(int64_t i) const {
    using T = ComputeOf<S>;
    const uint64_t row = inner.Divide(static_cast<uint64_t>(i));
    return Convert<S>(Convert<T>(output[i]) +
                      Convert<T>(bias[channels.Split(row).rest]));
  }
  HOLDFAST_HD void Store(int64_t i, S sum) const { output[i] = sum; }
};

template <typename S>
absl::Status AddBias(KernelContext& context, const Conv& c, const S* bias,
                     S* output) {
  const int64_t channels = c.out_channels, inner = c.l();
  return ForEachTile(
      context, c.samples * channels * inner,
      BiasAdded<S>{WideDivisor(channels), WideDivisor(inner), bias, output});
}

// Products of the weight and unfolded windows.
absl::Status UnfoldedForward(KernelContext& context, const Conv& c,
                             const ContiguousOperands<3>& in,
                             const TensorView& output) {
  const TensorSpec& out = *output.spec;
  absl::Status s;
  const int64_t item = static_cast<int64_t>(ItemSize(out.dtype));
  const int64_t chunk = c.Chunk(item), per_sample = c.groups * c.k() * c.l();
  char* const columns = ScratchOf<char>(context, chunk * per_sample * item);
  if (columns == nullptr) return NoScratch();
  const TensorView columns_view{columns, nullptr};
  for (int64_t first = 0; first < c.samples && s.ok(); first += chunk) {
    const int64_t samples = std::min(chunk, c.samples - first);
    s = Unfold(context, c, out.dtype, in.views[0], first, samples, columns);
    if (!s.ok()) return s;
    // W [out, k] x columns [k, l], for each sample and group.
    Products p;
    p.m = c.group_out();
    p.n = c.l();
    p.k = c.k();
    p.a_row = c.k();
    p.a_col = 1;
    p.b_row = c.l();
    p.b_col = 1;
    p.batch = {samples, c.groups};
    p.a_batch = {0, p.m * p.k};
    p.b_batch = {per_sample, p.k * p.n};
    const Part b(columns_view, 0, samples * per_sample, out.dtype);
    const int64_t each = c.out_channels * c.l();
    const Part to(output, first * each, samples * each, out.dtype);
    s = RunProducts(context, p, in.views[1], b.view, false, to.view);
  }
  return s;
}

absl::Status Forward(KernelContext& context, const Attrs& attrs,
                     absl::Span<const TensorView> inputs,
                     const TensorView& output) {
  const TensorSpec& out = *output.spec;
  if (out.numel() == 0) return absl::OkStatus();
  const Conv c =
      MakeConv(attrs, inputs[0].spec->shape, inputs[1].spec->shape, out.shape);
  ContiguousOperands<3> in;
  absl::Status s = in.Make(context, inputs, out.dtype);
  if (!s.ok()) return s;
  if (!RunDnn(context, ConvPass::kForward, c, out.dtype,
              {in.views[0].data, in.views[1].data, output.data})) {
    s = UnfoldedForward(context, c, in, output);
  }
  if (!s.ok() || !in.views[2].present()) return s;
  return DispatchStoredFloat(out.dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    return AddBias<S>(context, c, in.views[2].as<S>(), output.as<S>());
  });
}

absl::Status BackwardInput(KernelContext& context, const Attrs& attrs,
                           absl::Span<const TensorView> inputs,
                           const TensorView& output) {
  const TensorSpec& out = *output.spec;
  if (out.numel() == 0) return absl::OkStatus();
  const Conv c =
      MakeConv(attrs, out.shape, inputs[1].spec->shape, inputs[0].spec->shape);
  ContiguousOperands<3> in;
  absl::Status s = in.Make(context, inputs, out.dtype);
  if (!s.ok()) return s;
  if (RunDnn(context, ConvPass::kBackwardInput, c, out.dtype,
             {output.data, in.views[1].data, in.views[0].data})) {
    return s;
  }
  const int64_t item = static_cast<int64_t>(ItemSize(out.dtype));
  const int64_t chunk = c.Chunk(item), per_sample = c.groups * c.k() * c.l();
  char* const columns = ScratchOf<char>(context, chunk * per_sample * item);
  if (columns == nullptr) return NoScratch();
  const TensorView columns_view{columns, nullptr};
  for (int64_t first = 0; first < c.samples && s.ok(); first += chunk) {
    const int64_t samples = std::min(chunk, c.samples - first);
    // W' [k, out] x grad [out, l].
    Products p;
    p.m = c.k();
    p.n = c.l();
    p.k = c.group_out();
    p.a_row = 1;
    p.a_col = c.k();
    p.b_row = c.l();
    p.b_col = 1;
    p.batch = {samples, c.groups};
    p.a_batch = {0, p.m * p.k};
    p.b_batch = {c.out_channels * c.l(), p.k * p.n};
    const int64_t each = c.out_channels * c.l();
    const Part grad(in.views[0], first * each, samples * each, out.dtype);
    const Part to(columns_view, 0, samples * per_sample, out.dtype);
    s = RunProducts(context, p, in.views[1], grad.view, false, to.view);
    if (!s.ok()) return s;
    s = DispatchStoredFloat(out.dtype, [&](auto tag) -> absl::Status {
      using S = typename decltype(tag)::type;
      return FoldPlanes<S>(
          context, c.windows, samples * c.in_channels,
          reinterpret_cast<const S*>(columns),
          output.as<S>() + first * c.in_channels * c.windows.plane());
    });
  }
  return s;
}

absl::Status BackwardWeight(KernelContext& context, const Attrs& attrs,
                            absl::Span<const TensorView> inputs,
                            const TensorView& output) {
  const TensorSpec& out = *output.spec;
  if (out.numel() == 0) return absl::OkStatus();
  const Conv c =
      MakeConv(attrs, inputs[1].spec->shape, out.shape, inputs[0].spec->shape);
  ContiguousOperands<3> in;
  absl::Status s = in.Make(context, inputs, out.dtype);
  if (s.ok() && RunDnn(context, ConvPass::kBackwardWeight, c, out.dtype,
                       {in.views[1].data, output.data, in.views[0].data})) {
    return s;
  }
  if (s.ok()) s = Cuda(context).FillBytes(output.data, 0, out.nbytes());
  if (!s.ok()) return s;
  const int64_t item = static_cast<int64_t>(ItemSize(out.dtype));
  const int64_t chunk = c.Chunk(item), per_sample = c.groups * c.k() * c.l();
  char* const columns = ScratchOf<char>(context, chunk * per_sample * item);
  if (columns == nullptr) return NoScratch();
  const TensorView columns_view{columns, nullptr};
  for (int64_t first = 0; first < c.samples; first += chunk) {
    const int64_t samples = std::min(chunk, c.samples - first);
    s = Unfold(context, c, out.dtype, in.views[1], first, samples, columns);
    // grad [out, l] x columns' [l, k], added up over the samples.
    Products p;
    p.m = c.group_out();
    p.n = c.k();
    p.k = c.l();
    p.a_row = c.l();
    p.a_col = 1;
    p.b_row = 1;
    p.b_col = c.l();
    p.batch = {c.groups};
    p.a_batch = {p.m * p.k};
    p.b_batch = {p.k * p.n};
    const int64_t each = c.out_channels * c.l();
    for (int64_t i = 0; i < samples && s.ok(); ++i) {
      const Part grad(in.views[0], (first + i) * each, each, out.dtype);
      const Part b(columns_view, i * per_sample, per_sample, out.dtype);
      s = RunProducts(context, p, grad.view, b.view, /*add=*/true, output);
    }
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

#define HOLDFAST_CONV_KERNEL(name, function)             \
  HOLDFAST_CUDA_KERNEL(name) {                           \
    return function(context, attrs, inputs, outputs[0]); \
  }
HOLDFAST_CONV_KERNEL(conv2d, Forward)
HOLDFAST_CONV_KERNEL(conv3d, Forward)
HOLDFAST_CONV_KERNEL(conv2d_backward_input, BackwardInput)
HOLDFAST_CONV_KERNEL(conv3d_backward_input, BackwardInput)
HOLDFAST_CONV_KERNEL(conv2d_backward_weight, BackwardWeight)
HOLDFAST_CONV_KERNEL(conv3d_backward_weight, BackwardWeight)
#undef HOLDFAST_CONV_KERNEL

}  // namespace holdfast::cuda
