// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of recurrent layers.
#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Gates per hidden unit, and values per unit that backward needs; 0: no mode.
int64_t Gates(const std::string& mode) {
  if (mode == "tanh" || mode == "relu") return 1;
  return mode == "lstm" ? 4 : mode == "gru" ? 3 : 0;
}
int64_t SavedGates(const std::string& mode) {
  return mode == "lstm" || mode == "gru" ? 4 : 0;
}

struct RnnShapes {
  Dims lead;  // [T, B] or [n]
  int64_t batch = 0, hidden = 0, gates = 0;
  // `lead` followed by `width` values.
  Dims Row(int64_t width) const {
    Dims shape = lead;
    shape.push_back(width);
    return shape;
  }
};

// What both ops share, from the sizes of `rows` (input_gates or output, whose
// last size is not looked at).
absl::Status CheckRnn(const Attrs& attrs, SpecList inputs,
                      const TensorSpec& rows, const TensorSpec* batch_sizes,
                      const TensorSpec& h0, const TensorSpec* c0,
                      const TensorSpec& weight, RnnShapes* shapes) {
  const std::string& mode = attrs.Str("mode");
  shapes->gates = Gates(mode);
  if (shapes->gates == 0) {
    return Invalid(attrs, inputs, "unknown mode ", AttrToString(mode));
  }
  if (h0.rank() != 2) return Invalid(attrs, inputs, "h0 must be [B, H]");
  shapes->batch = h0.shape[0];
  shapes->hidden = h0.shape[1];
  if (rows.rank() != (batch_sizes == nullptr ? 3 : 2) ||
      (batch_sizes == nullptr && rows.shape[1] != shapes->batch)) {
    return Invalid(attrs, inputs,
                   "rows must be [T, B, ...], or [n, ...] with batch_sizes, "
                   "for B=",
                   shapes->batch);
  }
  if (batch_sizes != nullptr &&
      (batch_sizes->rank() != 1 || batch_sizes->dtype != DType::kInt64)) {
    return Invalid(attrs, inputs, "batch_sizes must be int64 [T]");
  }
  shapes->lead.assign(rows.shape.begin(), rows.shape.end() - 1);
  if ((c0 != nullptr) != (mode == "lstm") ||
      (c0 != nullptr && c0->shape != h0.shape)) {
    return Invalid(attrs, inputs, "c0 must be as h0, for mode 'lstm' only");
  }
  int64_t height = 0;
  if (!SafeMul(shapes->gates, shapes->hidden, &height) ||
      weight.shape != Dims{height, shapes->hidden}) {
    return Invalid(attrs, inputs, "weight must be [", height, ", ",
                   shapes->hidden, "]");
  }
  return absl::OkStatus();
}

absl::Status RequireShape(const Attrs& attrs, SpecList inputs, int slot,
                          const Dims& shape) {
  if (inputs[slot] == nullptr || inputs[slot]->shape == shape) {
    return absl::OkStatus();
  }
  const OpSchema& schema = attrs.schema();
  return Invalid(attrs, inputs, schema.params[schema.tensor_params[slot]].name,
                 " must be ", TorchShape(shape));
}

void AddIf(OutputSpecs* out, bool condition, DType dtype, const Dims& shape) {
  AddOutput(out, dtype, condition ? shape : Dims{0});
}

}  // namespace

HOLDFAST_INFER(InferRnnLayer) {
  const TensorSpec& rows = *inputs[0];
  RnnShapes s;
  absl::Status status = CheckRnn(attrs, inputs, rows, inputs[1], *inputs[2],
                                 inputs[3], *inputs[4], &s);
  if (status.ok()) status = RequireFloat(attrs, inputs, 0);
  for (int slot = 2; slot <= 5 && status.ok(); ++slot) {
    status = RequireSameDType(attrs, inputs, 0, slot);
  }
  const int64_t width = s.gates * s.hidden;
  if (status.ok()) status = RequireShape(attrs, inputs, 0, s.Row(width));
  if (status.ok()) status = RequireShape(attrs, inputs, 5, {width});
  if (!status.ok()) return status;
  const bool lstm = attrs.Str("mode") == "lstm";
  const int64_t saved = SavedGates(attrs.Str("mode"));
  AddOutput(out, rows.dtype, s.Row(s.hidden));
  AddOutput(out, rows.dtype, {s.batch, s.hidden});
  AddIf(out, lstm, rows.dtype, {s.batch, s.hidden});
  AddIf(out, saved > 0, rows.dtype, s.Row(saved * s.hidden));
  AddIf(out, lstm, rows.dtype, s.Row(s.hidden));
  return absl::OkStatus();
}

HOLDFAST_INFER(InferRnnLayerBackward) {
  const TensorSpec& output = *inputs[7];
  RnnShapes s;
  absl::Status status = CheckRnn(attrs, inputs, output, inputs[3], *inputs[4],
                                 inputs[5], *inputs[6], &s);
  if (status.ok()) status = RequireFloat(attrs, inputs, 7);
  for (int slot : {0, 1, 2, 4, 5, 6, 8, 9}) {
    if (status.ok()) status = RequireSameDType(attrs, inputs, 7, slot);
  }
  if (!status.ok()) return status;
  const bool lstm = attrs.Str("mode") == "lstm";
  const int64_t saved = SavedGates(attrs.Str("mode"));
  const Dims state = {s.batch, s.hidden};
  const Dims nothing = {0};
  const std::pair<int, Dims> shapes[] = {
      {0, s.Row(s.hidden)},
      {1, state},
      {2, state},
      {7, s.Row(s.hidden)},
      {8, saved > 0 ? s.Row(saved * s.hidden) : nothing},
      {9, lstm ? s.Row(s.hidden) : nothing}};
  for (const auto& [slot, shape] : shapes) {
    status = RequireShape(attrs, inputs, slot, shape);
    if (!status.ok()) return status;
  }
  const int64_t width = s.gates * s.hidden;
  AddOutput(out, output.dtype, s.Row(width));
  AddOutput(out, output.dtype, inputs[6]->shape);
  AddOutput(out, output.dtype, {width});
  AddOutput(out, output.dtype, state);
  AddIf(out, lstm, output.dtype, state);
  return absl::OkStatus();
}

}  // namespace holdfast
