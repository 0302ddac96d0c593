// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// GradRule: how to differentiate one op, written in ops, so that gradients
// of gradients come for free. One `const GradRule Grad_<op>` per row of the op
// table that is not kNoGrad, in rules_<family>.cc; a missing one does not link.
// Thread-safety: rules are stateless; a GradContext serves one call.
#ifndef HOLDFAST_AUTOGRAD_GRAD_RULE_H_
#define HOLDFAST_AUTOGRAD_GRAD_RULE_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "autograd/op_sink.h"
#include "autograd/tape.h"
#include "autograd/variable.h"
#include "ops/op_schema.h"

namespace holdfast {

using NamedAttr = std::pair<absl::string_view, AttrValue>;

// An argument of a binary op: a tensor or a Python number.
struct Operand {
  Operand(Value value) : tensor(std::move(value)) {}      // NOLINT
  Operand(AttrValue value) : number(std::move(value)) {}  // NOLINT
  Operand(double value) : number(value) {}                // NOLINT
  Operand(int64_t value) : number(value) {}               // NOLINT
  bool is_number() const { return !IsNone(number); }

  Value tensor;
  AttrValue number;  // None: the tensor counts
};

// The gradient of a view of a part of input `input`: `grad` there, zero
// elsewhere, which is what `place` makes of it.
struct PartGradient {
  int input = 0;
  Value grad;
  Attrs place;
};

// What a rule may use and must produce. Errors stick: after the first failed
// op every further Call returns null and does nothing, so rules do not check;
// the engine reads status() once at the end.
class GradContext {
 public:
  // `grads`: per output of the node, null where no gradient arrived; a rule may
  // take them. Bit i of
  // `wanted` (i < 64): the gradient of input i leads to a target.
  GradContext(OpSink* sink, Node* node, absl::Span<Value> grads,
              bool create_graph, uint64_t wanted = ~uint64_t{0});

  // Gradient of output i; null: zero. Single-output rules always find it.
  // Complex ones come conjugated, and Set conjugates what it is given: the
  // gradient of a holomorphic f is g conj(f'(x)) = conj(conj(g) f'(x)), so that
  // its rule reads as for real numbers. Rules between real and complex numbers
  // say conj themselves.
  const Value& grad(int i = 0) const { return grads_[i]; }
  // grad() for a rule that looks at it once: null from then on.
  Value TakeGrad() { return std::move(grads_[0]); }
  // Saved tensors; REQUIRES that the rule's masks name them. Null where the
  // op had none. A tensor that was written since, or freed, sets the error.
  Value input(int i);
  Value output(int i = 0);
  // Input i, or the number given in its place.
  Operand operand(int i);
  bool is_number(int i) const;
  // Whether inputs i and j, which both need gradients, are one variable, as in
  // x * x, of one saved value: users may unpack two different ones.
  bool same_variable(int i, int j) const {
    if (!needs(i) || !needs(j) || node_->packed()) return false;
    const Edge &a = node_->edges[i], &b = node_->edges[j];
    return a.node.get() == b.node.get() && a.output == b.output;
  }
  // REQUIRES: is_number(i).
  const AttrValue& number(int i) const;
  // REQUIRES: needs(i), or the rule keeps all specs.
  const TensorSpec& input_spec(int i) const { return node_->input_specs[i]; }
  // Always available.
  const Attrs& attrs() const { return node_->attrs(); }
  int num_inputs() const { return static_cast<int>(node_->edges.size()); }
  // False: this input is absent or its gradient is of no use; do not compute.
  bool needs(int i) const {
    return i < num_inputs() && node_->edges[i] &&
           (i >= 64 || ((wanted_ >> i) & 1u) != 0);
  }

  // The gradient is itself recorded: a rule whose fused backward op has no
  // gradient writes it in plain ops then.
  bool create_graph() const { return create_graph_; }

  // Hands over the gradient of input i. Its shape must equal the input's; a
  // different dtype is converted here. Without a Set it is zero.
  void Set(int i, Value grad);

  // The same for a view of a part of it, once in a rule; `place` is an op of
  // the gradient alone. Where the input has more such views, or other uses, the
  // engine adds to the part, and whole tensors of zeros are never made.
  void SetPart(int i, OpId place, std::initializer_list<NamedAttr> attrs);

  // Emits an op; returns its first (or all) outputs. A null input is an
  // absent tensor; operands given as numbers are null with their attr set.
  Value Call(OpId op, std::initializer_list<Value> inputs,
             std::initializer_list<NamedAttr> attrs = {});
  // Call of an elementwise op whose first input, given up by the caller, lends
  // the result its memory if it can.
  Value CallOver(OpId op, std::initializer_list<Value> inputs,
                 std::initializer_list<NamedAttr> attrs = {});
  Values CallAll(OpId op, absl::Span<const Value> inputs,
                 std::initializer_list<NamedAttr> attrs = {});
  // The form the others end in.
  Value Emit(const Attrs& attrs, absl::Span<const Value> inputs);

  const absl::Status& status() const { return status_; }
  void Fail(absl::Status status);
  absl::Span<Value> results() { return absl::MakeSpan(results_); }
  std::optional<PartGradient> TakePart() { return std::move(part_); }

 private:
  // The first of `outputs`, or null and their status kept.
  Value First(absl::StatusOr<Values> outputs);
  // `output` < 0: an input.
  Value Unpack(const SavedValue& saved, int output);

  OpSink* sink_;
  Node* node_;
  absl::Span<Value> grads_;
  Values conjugated_;  // what grads_ shows, if any of them is complex
  bool create_graph_;
  int device_ = 0;  // the gradients', for ops without inputs
  uint64_t wanted_;
  absl::Status status_;
  Values results_;
  std::optional<PartGradient> part_;
};

// Bit i of the masks: input (output) i is kept for backward. kAllInputs: every
// one, however many there are (bit 31 speaks for all later inputs).
inline constexpr uint32_t kAllInputs = ~0u;
constexpr uint32_t Bit(int i) { return 1u << i; }

struct GradRule {
  void (*apply)(GradContext& context);
  uint32_t saved_inputs = 0;
  uint32_t saved_outputs = 0;
  // Inputs among the saved ones that only the gradients of *other* inputs use:
  // kept only if another input needs a gradient.
  uint32_t serves_others = 0;
  // Keep the specs of all inputs, not only of those that need a gradient.
  bool all_specs = false;
};

// Defines Grad_<name> with the masks given after the name (as in GradRule) and
// opens the body of its function; the context is `c`.
#define HOLDFAST_GRAD(name, ...)                               \
  static void Apply_##name(GradContext& c);                    \
  const GradRule Grad_##name = {&Apply_##name, ##__VA_ARGS__}; \
  static void Apply_##name(GradContext& c)

#define OP(name, signature, infer, flags, since, doc) \
  extern const GradRule Grad_##name;
#include "ops/ops.def"
#undef OP

// Null for ops that are not differentiable.
const GradRule* FindGradRule(OpId op);

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_GRAD_RULE_H_
