// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "autograd/view_history.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/grad_rule.h"
#include "autograd/tape.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

Attrs MakeAttrs(OpId op, std::initializer_list<NamedAttr> values) {
  Attrs attrs(&GetOp(op));
  for (const NamedAttr& value : values) attrs.Set(value.first, value.second);
  return attrs;
}

// A node for an op that never runs: only its gradient is wanted.
Edge Record(const Attrs& attrs,
            std::initializer_list<std::pair<Edge, TensorSpec>> inputs,
            Value saved = nullptr, int saved_input = 0) {
  RefPtr<Node> node = MakeRef<Node>(attrs, FindGradRule(attrs.schema().id));
  for (const auto& [edge, spec] : inputs) {
    node->edges.push_back(edge);
    node->input_specs.push_back(spec);
  }
  if (saved) {
    node->saved_inputs.resize(inputs.size());
    const uint32_t version = saved->version();
    node->saved_inputs[saved_input] = {std::move(saved), version};
  }
  return Edge(std::move(node), 0);
}

int64_t Extent(const TensorSpec& spec, int64_t low) {
  int64_t last = spec.offset - low;
  for (int d = 0; d < spec.rank(); ++d) {
    last += (spec.shape[d] - 1) * spec.strides[d];
  }
  return last + 1;
}

// For each element of `view`, in order, the row-major number of the element of
// `whole` that shares its place: int64 [view.numel()].
absl::StatusOr<Value> PlacesIn(const TensorSpec& whole, const TensorSpec& view,
                               OpSink& sink) {
  const int64_t low = std::min(whole.offset, view.offset);
  const auto emit = [&](Attrs attrs, std::initializer_list<Value> inputs,
                        bool inplace = false) -> absl::StatusOr<Value> {
    attrs.set_device(whole.device);
    absl::StatusOr<Values> outputs =
        sink.Emit(attrs, absl::MakeConstSpan(inputs.begin(), inputs.size()),
                  /*record=*/false, inplace);
    if (!outputs.ok()) return outputs.status();
    return (*outputs)[0];
  };
  const auto seen_as = [&](const Value& storage, const TensorSpec& spec) {
    return emit(
        MakeAttrs(OpId::as_strided, {{"size", spec.shape},
                                     {"stride", spec.strides},
                                     {"storage_offset", spec.offset - low}}),
        {storage});
  };
  absl::StatusOr<Value> storage =
      emit(MakeAttrs(
               OpId::full,
               {{"size", Dims{std::max(Extent(whole, low), Extent(view, low))}},
                {"fill_value", int64_t{0}},
                {"dtype", DType::kInt64}}),
           {});
  if (!storage.ok()) return storage;
  absl::StatusOr<Value> numbers =
      emit(MakeAttrs(OpId::arange, {{"start", int64_t{0}},
                                    {"end", whole.numel()},
                                    {"dtype", DType::kInt64}}),
           {});
  if (!numbers.ok()) return numbers;
  numbers = emit(MakeAttrs(OpId::view, {{"size", whole.shape}}), {*numbers});
  if (!numbers.ok()) return numbers;
  absl::StatusOr<Value> target = seen_as(*storage, whole);
  if (!target.ok()) return target;
  target = emit(MakeAttrs(OpId::copy, {}), {*target, *numbers}, true);
  if (!target.ok()) return target;
  absl::StatusOr<Value> places = seen_as(*storage, view);
  if (!places.ok()) return places;
  places = emit(MakeAttrs(OpId::clone, {}), {*places});
  if (!places.ok()) return places;
  return emit(MakeAttrs(OpId::view, {{"size", Dims{view.numel()}}}), {*places});
}

absl::Status OtherDType(const TensorSpec& view, const TensorSpec& whole) {
  return absl::UnimplementedError(absl::StrCat(
      "a recorded write to a tensor with views of another dtype is not "
      "supported. Got a view ",
      view.ToString(), " of ", whole.ToString(), "; write to a clone instead"));
}

}  // namespace

bool ViewHistory::leaf_requires_grad() const {
  return edge_ && edge_.node->is_leaf();
}

void ViewHistory::WriteWhole(Edge edge) {
  edge_ = std::move(edge);
  ++writes_;
}

absl::Status ViewHistory::WriteView(const TensorSpec& view, Edge edge,
                                    OpSink& sink) {
  if (view.dtype != whole_.dtype) return OtherDType(view, whole_);
  if (view.numel() == 0) {
    ++writes_;
    return absl::OkStatus();
  }
  if (MayOverlap(view) || MayOverlap(whole_)) {
    return absl::UnimplementedError(absl::StrCat(
        "a recorded write through a view whose elements may share memory is "
        "not supported. Got a view ",
        view.ToString(), " strides ", ShapeString(view.strides), " of ",
        whole_.ToString(), " strides ", ShapeString(whole_.strides),
        "; write to a clone instead"));
  }
  if (whole_.contiguous()) {
    edge_ = Record(MakeAttrs(OpId::as_strided_scatter,
                             {{"size", view.shape},
                              {"stride", view.strides},
                              {"storage_offset", view.offset - whole_.offset}}),
                   {{edge_, whole_}, {std::move(edge), view}});
    ++writes_;
    return absl::OkStatus();
  }
  // whole = view(scatter(flat whole, places, flat view)): a tensor with gaps
  // or in another order has no strides in terms of its own elements.
  absl::StatusOr<Value> places = PlacesIn(whole_, view, sink);
  if (!places.ok()) return places.status();
  const TensorSpec flat = ContiguousSpec(whole_.dtype, {whole_.numel()});
  const TensorSpec flat_view = ContiguousSpec(view.dtype, {view.numel()});
  Edge old =
      Record(MakeAttrs(OpId::view, {{"size", flat.shape}}), {{edge_, whole_}});
  if (!edge_) old = Edge();
  const Edge part = Record(MakeAttrs(OpId::view, {{"size", flat_view.shape}}),
                           {{std::move(edge), view}});
  const Edge written =
      Record(MakeAttrs(OpId::scatter, {{"dim", int64_t{0}}}),
             {{old, flat}, {Edge(), (*places)->spec()}, {part, flat_view}},
             *places, 1);
  edge_ = Record(MakeAttrs(OpId::view, {{"size", whole_.shape}}),
                 {{written, flat}});
  ++writes_;
  return absl::OkStatus();
}

absl::StatusOr<Edge> ViewHistory::ReadView(const TensorSpec& view) const {
  if (!edge_) return Edge();
  if (view.dtype != whole_.dtype) return OtherDType(view, whole_);
  return Record(MakeAttrs(OpId::as_strided, {{"size", view.shape},
                                             {"stride", view.strides},
                                             {"storage_offset", view.offset}}),
                {{edge_, whole_}});
}

}  // namespace holdfast
