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

// What a rule may use and must produce. Errors stick: after the first failed
// op every further Call returns null and does nothing, so rules do not check;
// the engine reads status() once at the end.
class GradContext {
 public:
  // `grads`: per output of the node, null where no gradient arrived.
  GradContext(OpSink* sink, Node* node, absl::Span<const Value> grads,
              bool create_graph);

  // Gradient of output i. Single-output rules always find it present.
  const Value& grad(int i = 0) const;
  // Saved tensors; REQUIRES that the rule's masks name them. A tensor that was
  // written since sets the error that names the op and both versions.
  Value input(int i);
  Value output(int i = 0);
  // Always available.
  const TensorSpec& input_spec(int i) const;
  const TensorSpec& output_spec(int i = 0) const;
  const Attrs& attrs() const;
  int num_inputs() const;
  // False: this input is absent or needs no gradient; Set would be wasted.
  bool needs(int i) const;

  // Hands over the gradient of input i; shape must equal the input's.
  void Set(int i, Value grad);

  // Emits an op; returns its first (or all) outputs. A null input is an
  // absent tensor; operands given as numbers are null with their attr set.
  Value Call(OpId op, std::initializer_list<Value> inputs,
             std::initializer_list<NamedAttr> attrs = {});
  Values CallAll(OpId op, absl::Span<const Value> inputs,
                 std::initializer_list<NamedAttr> attrs = {});

  const absl::Status& status() const { return status_; }
  void Fail(absl::Status status);
  absl::Span<Value> results() { return absl::MakeSpan(results_); }

 private:
  Value Unpack(const SavedValue& saved, const TensorSpec& spec, int output);

  OpSink* sink_;
  Node* node_;
  absl::Span<const Value> grads_;
  bool create_graph_;
  absl::Status status_;
  Values results_;
};

// Bit i of the masks: input (output) i is kept for backward. kAll: every one.
inline constexpr uint32_t kAllInputs = ~0u;
constexpr uint32_t Bit(int i) { return 1u << i; }

struct GradRule {
  uint32_t saved_inputs;
  uint32_t saved_outputs;
  void (*apply)(GradContext& context);
};

#define OP(name, signature, infer, flags, since, doc) \
  extern const GradRule Grad_##name;
#include "ops/ops.def"
#undef OP

// Null for ops that are not differentiable.
const GradRule* FindGradRule(OpId op);

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_GRAD_RULE_H_
