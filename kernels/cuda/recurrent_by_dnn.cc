// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/recurrent_by_dnn.h"

#include <algorithm>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/recurrent_layer.h"
#include "kernels/cuda/turned_rows.h"

namespace holdfast::cuda {
namespace {

using Views = absl::Span<const TensorView>;

RnnProblem ProblemOf(KernelContext& context, const Attrs& attrs, Views layer,
                     bool save) {
  const TensorSpec& input = *layer[kRnnInput].spec;
  const TensorSpec& h0 = *layer[kRnnH0].spec;
  RnnProblem p;
  p.mode = ReadRecurrentMode(attrs);
  p.dtype = input.dtype;
  p.bias = layer[kRnnBiasIh].present();
  p.packed = layer[kRnnBatchSizes].present();
  p.save = save;
  p.tf32 = input.dtype == DType::kFloat32 && Cuda(context).numerics.conv_tf32;
  p.steps = p.packed ? layer[kRnnBatchSizes].spec->numel() : input.shape[0];
  p.batch = h0.shape[0];
  p.hidden = h0.shape[1];
  p.inputs = input.shape.back();
  return p;
}

// A layer as cuDNN takes it: contiguous, and the steps in the order in which
// they are computed.
class DnnLayer {
 public:
  RecurrentSteps steps;
  RnnProblem problem;
  std::vector<int32_t> lengths;
  RnnLayer layer;

  // `views`: rnn_layer's inputs. False where cuDNN cannot be asked: a sample
  // without steps.
  absl::StatusOr<bool> Make(KernelContext& context, const Attrs& attrs,
                            Views views, bool save) {
    problem = ProblemOf(context, attrs, views, save);
    absl::Status status = ReadRecurrentSteps(context, attrs, views, &steps);
    if (!status.ok()) return status;
    if (!problem.InRange() || steps.sizes[0] != steps.batch) return false;
    if (problem.packed) lengths = steps.Lengths();
    if (steps.reverse) status = turned_.Make(context, steps, problem.packed);
    for (int i = 0; i < kRnnLayerInputs && status.ok(); ++i) {
      if (i == kRnnBatchSizes || !views[i].present()) continue;
      status = in_.MakeOne(context, i, views[i], problem.dtype);
    }
    if (!status.ok()) return status;
    absl::StatusOr<const void*> input = InOrder(context, in_.views[kRnnInput]);
    if (!input.ok()) return input.status();
    layer.input = *input;
    layer.h0 = in_.views[kRnnH0].data;
    layer.c0 = in_.views[kRnnC0].data;
    for (int i = 0; i < kRnnWeights; ++i) {
      layer.weights[i] = in_.views[kRnnWeightIh + i].data;
    }
    return true;
  }
  void SetReserve(const TensorView& reserve) {
    layer.reserve = reserve.data;
    layer.reserve_bytes = reserve.spec->nbytes();
  }
  // Contiguous rows in the order of their computation.
  absl::StatusOr<const void*> InOrder(KernelContext& context,
                                      const TensorView& rows) {
    if (!steps.reverse || !rows.present()) return rows.data;
    absl::StatusOr<void*> to = PlaceFor(context, rows);
    if (!to.ok()) return to.status();
    absl::Status status = turned_.Copy(context, rows, *to);
    if (!status.ok()) return status;
    return *to;
  }
  // Where rows in that order are to be written, and their way from there.
  absl::StatusOr<void*> PlaceFor(KernelContext& context,
                                 const TensorView& rows) {
    if (!steps.reverse) return rows.data;
    void* const place = ScratchOf<char>(context, rows.spec->nbytes());
    if (place == nullptr) return NoScratch();
    return place;
  }
  absl::Status Store(KernelContext& context, const void* place,
                     const TensorView& rows) {
    if (!steps.reverse) return absl::OkStatus();
    return turned_.Copy(context, {const_cast<void*>(place), rows.spec},
                        rows.data);
  }

 private:
  ContiguousOperands<kRnnLayerInputs> in_;
  TurnedRows turned_;
};

}  // namespace

int64_t DnnReserve(DnnRecurrent& library, KernelContext& context,
                   const Attrs& attrs, Views inputs, int64_t own) {
  const std::optional<size_t> bytes =
      library.ReserveBytes(ProblemOf(context, attrs, inputs, /*save=*/true));
  if (!bytes) return own;
  const size_t item = ItemSize(inputs[kRnnInput].spec->dtype);
  const int64_t elements = static_cast<int64_t>((*bytes + item - 1) / item);
  return std::max(own, elements) | 1;
}

absl::StatusOr<bool> LayerByDnn(DnnRecurrent& library, KernelContext& context,
                                const Attrs& attrs, Views inputs,
                                Views outputs) {
  const TensorView& reserve = outputs[3];
  const bool save = reserve.spec->numel() > 0;
  DnnLayer call;
  absl::StatusOr<bool> made = call.Make(context, attrs, inputs, save);
  if (!made.ok() || !*made) return made;
  absl::StatusOr<void*> output = call.PlaceFor(context, outputs[0]);
  if (!output.ok()) return output.status();
  call.layer.output = *output;
  if (save) call.SetReserve(reserve);
  RnnResults results;
  results.hn = outputs[1].data;
  if (call.steps.lstm()) results.cn = outputs[2].data;
  absl::StatusOr<bool> done = library.Forward(
      Cuda(context), call.problem, call.lengths, call.layer, results);
  if (!done.ok() || !*done) return done;
  absl::Status status = call.Store(context, call.layer.output, outputs[0]);
  if (!status.ok()) return status;
  return true;
}

absl::StatusOr<bool> LayerBackwardByDnn(DnnRecurrent& library,
                                        KernelContext& context,
                                        const Attrs& attrs, Views inputs,
                                        Views outputs) {
  DnnLayer call;
  absl::StatusOr<bool> made =
      call.Make(context, attrs, inputs.subspan(kRnnGrads, kRnnLayerInputs),
                /*save=*/true);
  if (!made.ok() || !*made) return made;
  ContiguousOperands<kRnnBackwardInputs> in;
  for (int i : {0, 1, 2, kRnnOutput, kRnnReserve}) {
    if (!inputs[i].present()) continue;
    absl::Status status = in.MakeOne(context, i, inputs[i], call.problem.dtype);
    if (!status.ok()) return status;
  }
  call.SetReserve(in.views[kRnnReserve]);
  absl::StatusOr<const void*> output =
      call.InOrder(context, in.views[kRnnOutput]);
  if (!output.ok()) return output.status();
  call.layer.output = const_cast<void*>(*output);
  RnnGradients gradients;
  absl::StatusOr<const void*> rows = call.InOrder(context, in.views[0]);
  if (!rows.ok()) return rows.status();
  gradients.output = *rows;
  gradients.hn = in.views[1].data;
  gradients.cn = in.views[2].data;
  const bool wanted = (attrs.Int("wanted") & kRnnInputGrad) != 0;
  if (wanted) {
    absl::StatusOr<void*> place = call.PlaceFor(context, outputs[0]);
    if (!place.ok()) return place.status();
    gradients.input = *place;
  }
  gradients.h0 = outputs[1].data;
  if (call.steps.lstm()) gradients.c0 = outputs[2].data;
  const int weights = (attrs.Int("wanted") & kRnnWeightGrads) == 0 ? 0
                      : call.problem.bias                          ? kRnnWeights
                                                                   : 2;
  for (int i = 0; i < weights; ++i) gradients.weights[i] = outputs[3 + i].data;
  absl::StatusOr<bool> done = library.Backward(
      Cuda(context), call.problem, call.lengths, call.layer, gradients);
  if (!done.ok() || !*done || !wanted) return done;
  absl::Status status = call.Store(context, gradients.input, outputs[0]);
  if (!status.ok()) return status;
  return true;
}

}  // namespace holdfast::cuda
