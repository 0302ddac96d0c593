// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of recurrent layers.
#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Gates per hidden unit; 0: no mode.
int64_t Gates(const std::string& mode) {
  if (mode == "tanh" || mode == "relu") return 1;
  return mode == "lstm" ? 4 : mode == "gru" ? 3 : 0;
}

struct RnnShapes {
  Dims lead;  // [T, B] or [n]
  int64_t batch = 0, hidden = 0, gates = 0, inputs = 0;
  // `lead` followed by `width` values.
  Dims Row(int64_t width) const {
    Dims shape = lead;
    shape.push_back(width);
    return shape;
  }
};

absl::Status RequireShape(const Attrs& attrs, SpecList inputs, int slot,
                          const Dims& shape) {
  if (inputs[slot] == nullptr || inputs[slot]->shape == shape) {
    return absl::OkStatus();
  }
  const OpSchema& schema = attrs.schema();
  return Invalid(attrs, inputs, schema.params[schema.tensor_params[slot]].name,
                 " must be ", TorchShape(shape));
}

// What both ops share: input, batch_sizes, h0, c0, both weights and both
// biases, from slot `first` on.
absl::Status CheckRnn(const Attrs& attrs, SpecList inputs, int first,
                      RnnShapes* shapes) {
  const TensorSpec& input = *inputs[first];
  const TensorSpec* const batch_sizes = inputs[first + 1];
  const TensorSpec& h0 = *inputs[first + 2];
  const TensorSpec* const c0 = inputs[first + 3];
  const std::string& mode = attrs.Str("mode");
  shapes->gates = Gates(mode);
  if (shapes->gates == 0) {
    return Invalid(attrs, inputs, "unknown mode ", AttrToString(mode));
  }
  if (h0.rank() != 2) return Invalid(attrs, inputs, "h0 must be [B, H]");
  shapes->batch = h0.shape[0];
  shapes->hidden = h0.shape[1];
  if (input.rank() != (batch_sizes == nullptr ? 3 : 2) ||
      (batch_sizes == nullptr && input.shape[1] != shapes->batch)) {
    return Invalid(attrs, inputs,
                   "input must be [T, B, ...], or [n, ...] with batch_sizes, "
                   "for B=",
                   shapes->batch);
  }
  if (batch_sizes != nullptr &&
      (batch_sizes->rank() != 1 || batch_sizes->dtype != DType::kInt64)) {
    return Invalid(attrs, inputs, "batch_sizes must be int64 [T]");
  }
  shapes->lead.assign(input.shape.begin(), input.shape.end() - 1);
  shapes->inputs = input.shape.back();
  if ((c0 != nullptr) != (mode == "lstm") ||
      (c0 != nullptr && c0->shape != h0.shape)) {
    return Invalid(attrs, inputs, "c0 must be as h0, for mode 'lstm' only");
  }
  if ((inputs[first + 6] == nullptr) != (inputs[first + 7] == nullptr)) {
    return Invalid(attrs, inputs, "bias_ih and bias_hh must go together");
  }
  absl::Status status = RequireFloat(attrs, inputs, first);
  for (int slot = first + 2; slot <= first + 7 && status.ok(); ++slot) {
    status = RequireSameDType(attrs, inputs, first, slot);
  }
  if (!status.ok()) return status;
  int64_t width = 0;
  if (!SafeMul(shapes->gates, shapes->hidden, &width)) {
    return Invalid(attrs, inputs, "h0 is too large");
  }
  const Dims wanted[] = {
      {width, shapes->inputs}, {width, shapes->hidden}, {width}, {width}};
  for (int i = 0; i < 4 && status.ok(); ++i) {
    status = RequireShape(attrs, inputs, first + 4 + i, wanted[i]);
  }
  return status;
}

void AddIf(OutputSpecs* out, bool condition, DType dtype, const Dims& shape) {
  AddOutput(out, dtype, condition ? shape : Dims{0});
}

}  // namespace

HOLDFAST_INFER(InferRnnLayer) {
  RnnShapes s;
  absl::Status status = CheckRnn(attrs, inputs, 0, &s);
  if (!status.ok()) return status;
  const DType dtype = inputs[0]->dtype;
  AddOutput(out, dtype, s.Row(s.hidden));
  AddOutput(out, dtype, {s.batch, s.hidden});
  AddIf(out, inputs[3] != nullptr, dtype, {s.batch, s.hidden});
  AddIf(out, attrs.Bool("save"), dtype, {kUnknownSize});
  return absl::OkStatus();
}

HOLDFAST_INFER(InferRnnLayerBackward) {
  constexpr int kInput = 3, kOutput = 11, kReserve = 12;
  RnnShapes s;
  absl::Status status = CheckRnn(attrs, inputs, kInput, &s);
  const Dims state = {s.batch, s.hidden};
  const std::pair<int, Dims> shapes[] = {
      {0, s.Row(s.hidden)}, {1, state}, {2, state}, {kOutput, s.Row(s.hidden)}};
  for (const auto& [slot, shape] : shapes) {
    if (status.ok()) status = RequireSameDType(attrs, inputs, kInput, slot);
    if (status.ok()) status = RequireShape(attrs, inputs, slot, shape);
  }
  if (status.ok()) status = RequireSameDType(attrs, inputs, kInput, kReserve);
  if (!status.ok()) return status;
  if (inputs[kReserve]->rank() != 1) {
    return Invalid(attrs, inputs, "reserve must be rnn_layer's");
  }
  const DType dtype = inputs[kInput]->dtype;
  const int64_t width = s.gates * s.hidden;
  const int64_t wanted = attrs.Int("wanted");  // kernels/recurrent_steps.h
  const bool weights = (wanted & 2) != 0;
  const bool biases = weights && inputs[kInput + 6] != nullptr;
  AddIf(out, (wanted & 1) != 0, dtype, s.Row(s.inputs));
  AddOutput(out, dtype, state);
  AddIf(out, inputs[kInput + 3] != nullptr, dtype, state);
  AddIf(out, weights, dtype, {width, s.inputs});
  AddIf(out, weights, dtype, {width, s.hidden});
  AddIf(out, biases, dtype, {width});
  AddIf(out, biases, dtype, {width});
  return absl::OkStatus();
}

}  // namespace holdfast
