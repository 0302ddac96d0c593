// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "autograd/grad_rule.h"

#include "absl/strings/str_cat.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// The lambda's body is instantiated, and its rule referenced, only for
// differentiable ops: the others need no rule.
template <bool kHasRule, typename F>
constexpr const GradRule* Pick(F pick) {
  if constexpr (kHasRule) {
    return pick(0);
  } else {
    return nullptr;
  }
}

Attrs Filled(OpId op, std::initializer_list<NamedAttr> attrs) {
  Attrs filled(&GetOp(op));
  for (const NamedAttr& attr : attrs) filled.Set(attr.first, attr.second);
  return filled;
}

}  // namespace

const GradRule* FindGradRule(OpId op) {
  static const GradRule* const rules[] = {
#define OP(name, signature, infer, flags, since, doc) \
  Pick<(((flags)&kNoGrad) == 0)>(                     \
      [](auto) -> const GradRule* { return &Grad_##name; }),
#include "ops/ops.def"
#undef OP
  };
  return rules[static_cast<int>(op)];
}

GradContext::GradContext(OpSink* sink, Node* node, absl::Span<Value> grads,
                         bool create_graph, uint64_t wanted)
    : sink_(sink),
      node_(node),
      grads_(grads),
      create_graph_(create_graph),
      wanted_(wanted),
      results_(node->edges.size()) {
  bool complex = false;
  for (const Value& g : grads) {
    if (!g) continue;
    complex |= IsComplex(g->spec().dtype);
    device_ = g->spec().device;
  }
  if (!complex) return;
  for (const Value& g : grads) {
    conjugated_.push_back(
        g && IsComplex(g->spec().dtype) ? Call(OpId::conj, {g}) : g);
  }
  grads_ = absl::MakeSpan(conjugated_);
}

Value GradContext::input(int i) {
  if (i >= static_cast<int>(node_->saved_inputs.size())) return nullptr;
  return Unpack(node_->saved_inputs[i], -1);
}

Value GradContext::output(int i) { return Unpack(node_->saved_outputs[i], i); }

Operand GradContext::operand(int i) {
  if (is_number(i)) return number(i);
  return input(i);
}

bool GradContext::is_number(int i) const {
  const OpSchema& schema = attrs().schema();
  const int slot = schema.params[schema.tensor_params[i]].attr_slot;
  return slot >= 0 && attrs().IsSet(slot);
}

const AttrValue& GradContext::number(int i) const {
  const OpSchema& schema = attrs().schema();
  return attrs().Get(schema.params[schema.tensor_params[i]].attr_slot);
}

Value GradContext::Unpack(const SavedValue& saved, int output) {
  if (!status_.ok()) return nullptr;
  if (node_->released()) {
    Fail(absl::FailedPreconditionError(absl::StrCat(
        "[", attrs().schema().name,
        "] Trying to backward through the graph a second time (or directly "
        "access saved tensors after they have already been freed). Saved "
        "intermediate values of the graph are freed when you call .backward() "
        "or autograd.grad(). Specify retain_graph=True if you need to backward "
        "through the graph a second time or if you need to access saved "
        "tensors after calling backward.")));
    return nullptr;
  }
  if (!saved.value) return nullptr;
  if (saved.value->version() != saved.version) {
    const char* writer = saved.value->last_writer();
    Fail(absl::FailedPreconditionError(absl::StrCat(
        "[", attrs().schema().name,
        "] one of the variables needed for gradient computation has been "
        "modified by an inplace operation: saved ",
        saved.value->spec().ToString(), " is at version ",
        saved.value->version(), " after [", writer, "]; expected version ",
        saved.version, " instead. Hint: use the out-of-place form of [", writer,
        "], or write to a clone.")));
    return nullptr;
  }
  if (output < 0 || !create_graph_ ||
      !IsDifferentiable(saved.value->spec().dtype)) {
    return saved.value;
  }
  // The saved alias has no history; give this use of it the output's own.
  Value alias = sink_->Alias(saved.value);
  alias->SetHistory(RefPtr<Node>(node_), static_cast<uint32_t>(output));
  return alias;
}

void GradContext::Set(int i, Value grad) {
  if (!status_.ok() || !grad) return;
  const TensorSpec& wanted = node_->input_specs[i];
  if (grad->spec().shape != wanted.shape) {
    Fail(absl::InternalError(absl::StrCat(
        "[", attrs().schema().name, "] the gradient of input ", i,
        " must have the input's shape. Got input=", wanted.ToString(),
        ", gradient=", grad->spec().ToString(), ".")));
    return;
  }
  if (grad->spec().dtype != wanted.dtype) {
    grad = Call(OpId::to, {std::move(grad)}, {{"dtype", wanted.dtype}});
  }
  if (IsComplex(wanted.dtype)) grad = Call(OpId::conj, {std::move(grad)});
  // The op ran elsewhere: it moved the input, or let it follow the others.
  if (grad && grad->spec().device != wanted.device) {
    grad = Call(OpId::to_device, {std::move(grad)},
                {{"device", int64_t{wanted.device}}});
  }
  results_[i] = std::move(grad);
}

void GradContext::SetPart(int i, OpId place,
                          std::initializer_list<NamedAttr> attrs) {
  const DType type = node_->input_specs[i].dtype;
  if (create_graph_ || IsComplex(type) || grad()->spec().dtype != type ||
      grad()->spec().device != node_->input_specs[i].device) {
    return Set(i, Call(place, {grad()}, attrs));
  }
  part_ = {i, grad(), Filled(place, attrs)};
}

Value GradContext::Call(OpId op, std::initializer_list<Value> inputs,
                        std::initializer_list<NamedAttr> attrs) {
  if (!status_.ok()) return nullptr;
  Attrs filled = Filled(op, attrs);
  if (inputs.size() == 0) filled.set_device(device_);
  return Emit(filled, absl::MakeConstSpan(inputs.begin(), inputs.size()));
}

Value GradContext::CallOver(OpId op, std::initializer_list<Value> inputs,
                            std::initializer_list<NamedAttr> attrs) {
  if (create_graph_) return Call(op, inputs, attrs);
  if (!status_.ok()) return nullptr;
  return First(sink_->EmitOver(
      Filled(op, attrs), absl::MakeConstSpan(inputs.begin(), inputs.size())));
}

Values GradContext::CallAll(OpId op, absl::Span<const Value> inputs,
                            std::initializer_list<NamedAttr> attrs) {
  Values none(GetOp(op).num_outputs);
  if (!status_.ok()) return none;
  absl::StatusOr<Values> outputs =
      sink_->Emit(Filled(op, attrs), inputs, create_graph_, /*inplace=*/false);
  if (outputs.ok()) return *std::move(outputs);
  Fail(outputs.status());
  return none;
}

Value GradContext::Emit(const Attrs& attrs, absl::Span<const Value> inputs) {
  if (!status_.ok()) return nullptr;
  return First(sink_->Emit(attrs, inputs, create_graph_, /*inplace=*/false));
}

Value GradContext::First(absl::StatusOr<Values> outputs) {
  if (outputs.ok()) return std::move((*outputs)[0]);
  Fail(outputs.status());
  return nullptr;
}

void GradContext::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

}  // namespace holdfast
