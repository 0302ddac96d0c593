// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d, conv3d and their two gradients each: float32 through oneDNN, the rest
// unfolded.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/conv_shape.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/dnnl_engine.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/op_time.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

using dnnl::memory;

// oneDNN computes with 32-bit sizes inside; what comes near their limits takes
// the other path.
bool FitsDnnl(const ConvShape& s) {
  constexpr int64_t kLimit = 1 << 28, kWindow = 1 << 14;
  for (const WindowAxis& axis : {s.d, s.h, s.w}) {
    if (axis.kernel > kWindow || axis.stride > kWindow ||
        axis.padding > kWindow || axis.dilation > kWindow ||
        axis.size > kLimit || axis.out > kLimit) {
      return false;
    }
  }
  return s.n <= kLimit && s.in_channels <= kLimit && s.out_channels <= kLimit &&
         s.in_plane() <= kLimit && s.out_plane() <= kLimit;
}

// The axes that the op has.
absl::InlinedVector<const WindowAxis*, 3> Axes(const ConvShape& s) {
  if (s.axes == 2) return {&s.h, &s.w};
  return {&s.d, &s.h, &s.w};
}

DnnlKey ConvKey(OpId op, const KernelContext& context, const ConvShape& s,
                bool bias) {
  DnnlKey key = {static_cast<int64_t>(op),
                 context.num_threads,
                 bias,
                 s.n,
                 s.in_channels,
                 s.out_channels,
                 s.groups};
  for (const WindowAxis* axis : Axes(s)) {
    for (int64_t field : {axis->size, axis->kernel, axis->stride, axis->padding,
                          axis->dilation}) {
      key.push_back(field);
    }
  }
  return key;
}

// A convolution's memory descriptions: as the tensors lie, and left to oneDNN.
struct ConvMemory {
  memory::desc input, weight, bias, output;
  memory::desc any_input, any_weight, any_output;
  memory::dims strides, dilates, before, after;

  ConvMemory(const ConvShape& s, bool with_bias) {
    const auto f32 = memory::data_type::f32;
    const auto any = memory::format_tag::any;
    using Tag = memory::format_tag;
    memory::dims in = {s.n, s.in_channels}, out = {s.n, s.out_channels};
    memory::dims w = {s.out_channels, s.in_channels};
    if (s.groups > 1) w = {s.groups, s.group_out(), s.group_in()};
    for (const WindowAxis* axis : Axes(s)) {
      in.push_back(axis->size);
      out.push_back(axis->out);
      w.push_back(axis->kernel);
    }
    // Tags only count dimensions: abcd is nchw, oihw, ...
    const Tag tags[] = {Tag::abcd, Tag::abcde, Tag::abcdef};
    input = memory::desc(in, f32, tags[in.size() - 4]);
    output = memory::desc(out, f32, tags[out.size() - 4]);
    weight = memory::desc(w, f32, tags[w.size() - 4]);
    any_input = memory::desc(in, f32, any);
    any_output = memory::desc(out, f32, any);
    any_weight = memory::desc(w, f32, any);
    if (with_bias) {
      bias = memory::desc({s.out_channels}, f32, memory::format_tag::x);
    }
    for (const WindowAxis* axis : Axes(s)) {
      strides.push_back(axis->stride);
      dilates.push_back(axis->dilation - 1);
      before.push_back(axis->padding);
      // What the windows reach beyond the far edge; less than nothing where
      // the last elements are not used.
      after.push_back((axis->out - 1) * axis->stride - axis->size +
                      (axis->kernel - 1) * axis->dilation + 1 - axis->padding);
    }
  }

  dnnl::convolution_forward::primitive_desc Forward(
      bool with_bias, const dnnl::primitive_attr& attr) const {
    const auto kind = dnnl::prop_kind::forward_training;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    using Desc = dnnl::convolution_forward::desc;
    return {with_bias ? Desc(kind, algorithm, any_input, any_weight, bias,
                             any_output, strides, dilates, before, after)
                      : Desc(kind, algorithm, any_input, any_weight, any_output,
                             strides, dilates, before, after),
            attr, DnnlEngine()};
  }
};

std::unique_ptr<DnnlOp> MakeForward(const ConvShape& s, bool with_bias) {
  const ConvMemory m(s, with_bias);
  const auto pd = m.Forward(with_bias, UserScratchpad());
  std::vector<DnnlOp::Operand> operands = {
      {DNNL_ARG_SRC, m.input, pd.src_desc()},
      {DNNL_ARG_WEIGHTS, m.weight, pd.weights_desc()},
      {DNNL_ARG_DST, m.output, pd.dst_desc(), true}};
  if (with_bias) operands.push_back({DNNL_ARG_BIAS, m.bias, m.bias});
  return std::make_unique<DnnlOp>(dnnl::convolution_forward(pd),
                                  pd.scratchpad_desc(), std::move(operands));
}

std::unique_ptr<DnnlOp> MakeBackwardInput(const ConvShape& s) {
  const ConvMemory m(s, false);
  const dnnl::convolution_backward_data::primitive_desc pd(
      dnnl::convolution_backward_data::desc(
          dnnl::algorithm::convolution_direct, m.any_input, m.any_weight,
          m.any_output, m.strides, m.dilates, m.before, m.after),
      UserScratchpad(), DnnlEngine(), m.Forward(false, UserScratchpad()));
  return std::make_unique<DnnlOp>(
      dnnl::convolution_backward_data(pd), pd.scratchpad_desc(),
      std::vector<DnnlOp::Operand>{
          {DNNL_ARG_DIFF_DST, m.output, pd.diff_dst_desc()},
          {DNNL_ARG_WEIGHTS, m.weight, pd.weights_desc()},
          {DNNL_ARG_DIFF_SRC, m.input, pd.diff_src_desc(), true}});
}

std::unique_ptr<DnnlOp> MakeBackwardWeight(const ConvShape& s) {
  const ConvMemory m(s, false);
  const dnnl::convolution_backward_weights::primitive_desc pd(
      dnnl::convolution_backward_weights::desc(
          dnnl::algorithm::convolution_direct, m.any_input, m.any_weight,
          m.any_output, m.strides, m.dilates, m.before, m.after),
      UserScratchpad(), DnnlEngine(), m.Forward(false, UserScratchpad()));
  return std::make_unique<DnnlOp>(
      dnnl::convolution_backward_weights(pd), pd.scratchpad_desc(),
      std::vector<DnnlOp::Operand>{
          {DNNL_ARG_DIFF_DST, m.output, pd.diff_dst_desc()},
          {DNNL_ARG_SRC, m.input, pd.src_desc()},
          {DNNL_ARG_DIFF_WEIGHTS, m.weight, pd.diff_weights_desc(), true}});
}

// Runs the op through oneDNN; false when it has to be unfolded instead.
template <typename Make>
bool TryDnnl(KernelContext& context, const Attrs& attrs, const ConvShape& s,
             bool bias, Make make, absl::Span<void* const> data,
             absl::Status* status) {
  if (!FitsDnnl(s)) return false;
  UseDnnlThreads(context);
  absl::StatusOr<DnnlOp*> op =
      CachedDnnlOp(ConvKey(attrs.schema().id, context, s, bias), make);
  if (!op.ok()) return false;
  *status = (*op)->Run(context, data);
  return true;
}

// Multiplications of one sample.
double WorkOfSample(const ConvShape& s) {
  return static_cast<double>(s.out_channels) *
         static_cast<double>(s.out_plane()) * static_cast<double>(s.taps());
}

// Samples that oneDNN computes at a time: nothing stops it. All of them where
// the whole is not much more than a piece may be.
int64_t SamplesAtATime(const KernelContext& context, const ConvShape& s) {
  const double most =
      static_cast<double>(OpTime::Multiplications(context.num_threads));
  const double each = WorkOfSample(s);
  if (static_cast<double>(s.n) * each <= 4 * most) return s.n;
  return std::max<int64_t>(1, static_cast<int64_t>(most / each));
}

// Of so many samples in one call.
absl::Status CheckTime(const KernelContext& context, const Attrs& attrs,
                       const ConvShape& s, int64_t samples) {
  // What a processor of 2020 does, by the second.
  constexpr double kFast = 5e10;
  return OpTime::CheckCall(
      absl::StrCat("[", attrs.schema().name, "] a convolution of ", samples,
                   samples == 1 ? " sample" : " samples"),
      static_cast<double>(samples) * WorkOfSample(s) /
          (kFast * context.num_threads));
}

// The same for an op whose output has the samples of its first operand, of
// `from_size` and `to_size` elements each. make(shape) is for some of them.
template <typename Make>
bool TrySamples(KernelContext& context, const Attrs& attrs, ConvShape s,
                Make make, const float* from, int64_t from_size, void* weight,
                float* to, int64_t to_size, void* bias, absl::Status* status) {
  const int64_t count = s.n, piece = SamplesAtATime(context, s);
  *status = CheckTime(context, attrs, s, piece);
  if (!status->ok()) return FitsDnnl(s);
  for (int64_t i = 0; i < count; i += piece) {
    if (i > 0 && context.Stopped()) return true;
    s.n = std::min(piece, count - i);
    if (!TryDnnl(
            context, attrs, s, bias != nullptr, [&] { return make(s); },
            {const_cast<float*>(from) + i * from_size, weight, to + i * to_size,
             bias},
            status)) {
      return false;
    }
    if (!status->ok()) return true;
  }
  return true;
}

// Inputs contiguous and of one type.
absl::Status Contiguous(KernelContext& context,
                        absl::Span<const TensorView> inputs, DType dtype,
                        absl::Span<TensorSpec> specs,
                        absl::Span<TensorView> views) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present()) continue;
    absl::Status s =
        MakeContiguous(context, inputs[i], dtype, &specs[i], &views[i]);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

ConvShape MakeConvShape(const Attrs& attrs, absl::Span<const int64_t> input,
                        absl::Span<const int64_t> weight,
                        absl::Span<const int64_t> output) {
  ConvShape s;
  s.axes = static_cast<int>(weight.size()) - 2;
  const size_t c = input.size() - s.axes - 1;
  s.n = c == 0 ? 1 : input[0];
  s.in_channels = input[c];
  s.out_channels = weight[0];
  s.groups = attrs.Int("groups");
  WindowAxis* axes[3] = {&s.d, &s.h, &s.w};
  const Dims &stride = attrs.Ints("stride"), &padding = attrs.Ints("padding"),
             &dilation = attrs.Ints("dilation");
  for (int i = 0; i < s.axes; ++i) {
    *axes[3 - s.axes + i] = {weight[2 + i],    stride[i],
                             padding[i],       dilation[i],
                             input[c + 1 + i], output[c + 1 + i]};
  }
  return s;
}

namespace {

absl::Status Conv(KernelContext& context, const Attrs& attrs,
                  absl::Span<const TensorView> inputs,
                  absl::Span<const TensorView> outputs) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  const ConvShape shape = MakeConvShape(attrs, inputs[0].spec->shape,
                                        inputs[1].spec->shape, out.shape);
  TensorSpec specs[3];
  TensorView views[3];
  absl::Status s = Contiguous(context, inputs, out.dtype, absl::MakeSpan(specs),
                              absl::MakeSpan(views));
  if (!s.ok()) return s;
  const bool bias = views[2].present();
  if (out.dtype == DType::kFloat32 && shape.in_channels > 0 && shape.n > 0 &&
      TrySamples(
          context, attrs, shape,
          [&](const ConvShape& some) { return MakeForward(some, bias); },
          views[0].as<float>(), shape.in_channels * shape.in_plane(),
          views[1].data, outputs[0].as<float>(),
          shape.out_channels * shape.out_plane(), views[2].data, &s)) {
    return s;
  }
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return UnfoldedConv<T>(context, shape, views[0].as<T>(), views[1].as<T>(),
                           views[2].as<T>(), outputs[0].as<T>());
  });
}

absl::Status ConvBackwardInput(KernelContext& context, const Attrs& attrs,
                               absl::Span<const TensorView> inputs,
                               absl::Span<const TensorView> outputs) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  const ConvShape shape = MakeConvShape(attrs, out.shape, inputs[1].spec->shape,
                                        inputs[0].spec->shape);
  TensorSpec specs[2];
  TensorView views[2];
  absl::Status s = Contiguous(context, inputs, out.dtype, absl::MakeSpan(specs),
                              absl::MakeSpan(views));
  if (!s.ok()) return s;
  if (out.dtype == DType::kFloat32 &&
      TrySamples(context, attrs, shape, MakeBackwardInput, views[0].as<float>(),
                 shape.out_channels * shape.out_plane(), views[1].data,
                 outputs[0].as<float>(), shape.in_channels * shape.in_plane(),
                 nullptr, &s)) {
    return s;
  }
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return UnfoldedConvBackwardInput<T>(context, shape, views[0].as<T>(),
                                        views[1].as<T>(), outputs[0].as<T>());
  });
}

absl::Status ConvBackwardWeight(KernelContext& context, const Attrs& attrs,
                                absl::Span<const TensorView> inputs,
                                absl::Span<const TensorView> outputs) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  const ConvShape shape = MakeConvShape(attrs, inputs[1].spec->shape, out.shape,
                                        inputs[0].spec->shape);
  TensorSpec specs[2];
  TensorView views[2];
  absl::Status s = Contiguous(context, inputs, out.dtype, absl::MakeSpan(specs),
                              absl::MakeSpan(views));
  if (!s.ok()) return s;
  // oneDNN sums over the batch.
  if (out.dtype == DType::kFloat32 && FitsDnnl(shape)) {
    s = CheckTime(context, attrs, shape, shape.n);
    if (!s.ok()) return s;
  }
  // An empty batch has a gradient, of zeros: the unfolded form gives it.
  if (out.dtype == DType::kFloat32 && shape.n > 0 &&
      TryDnnl(
          context, attrs, shape, false,
          [&] { return MakeBackwardWeight(shape); },
          {views[0].data, views[1].data, outputs[0].data}, &s)) {
    return s;
  }
  return DispatchFloat(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return UnfoldedConvBackwardWeight<T>(context, shape, views[0].as<T>(),
                                         views[1].as<T>(), outputs[0].as<T>());
  });
}

}  // namespace

#define HOLDFAST_CONV_KERNEL(name, function)          \
  HOLDFAST_CPU_KERNEL(name) {                         \
    return function(context, attrs, inputs, outputs); \
  }
HOLDFAST_CONV_KERNEL(conv2d, Conv)
HOLDFAST_CONV_KERNEL(conv3d, Conv)
HOLDFAST_CONV_KERNEL(conv2d_backward_input, ConvBackwardInput)
HOLDFAST_CONV_KERNEL(conv3d_backward_input, ConvBackwardInput)
HOLDFAST_CONV_KERNEL(conv2d_backward_weight, ConvBackwardWeight)
HOLDFAST_CONV_KERNEL(conv3d_backward_weight, ConvBackwardWeight)
#undef HOLDFAST_CONV_KERNEL

}  // namespace holdfast::cpu
