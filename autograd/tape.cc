// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "autograd/tape.h"

#include <atomic>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "autograd/grad_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

std::atomic<uint64_t> last_sequence{0};
thread_local int64_t thread_nodes = 0;

// Marks the nodes of user functions as no leaves; the engine runs them.
constexpr GradRule kUserFunctionRule = {nullptr};

// The inputs to keep: those the rule names, less those that only serve the
// gradients of other inputs when no other input needs one.
uint32_t InputsToSave(const GradRule& rule, const Node& node) {
  uint32_t mask = rule.saved_inputs;
  if ((mask & rule.serves_others) == 0) return mask;
  uint32_t needing = 0;
  const int n = static_cast<int>(node.edges.size());
  for (int i = 0; i < n && i < 32; ++i) {
    if (node.edges[i]) needing |= Bit(i);
  }
  for (int i = 0; i < n && i < 32; ++i) {
    if ((rule.serves_others & Bit(i)) != 0 && (needing & ~Bit(i)) == 0) {
      mask &= ~Bit(i);
    }
  }
  return mask;
}

bool IsSaved(uint32_t mask, size_t i) {
  // Lists longer than the mask follow its last bit (kAllInputs).
  return ((mask >> (i < 31 ? i : 31)) & 1u) != 0;
}

}  // namespace

int64_t NodesOfThread() { return thread_nodes; }

void SetNodesOfThread(int64_t nodes) { thread_nodes = nodes; }

Node::Node(const Attrs& attrs, const GradRule* rule)
    : attrs_(attrs),
      rule_(rule),
      sequence_(rule == nullptr
                    ? 0
                    : last_sequence.fetch_add(1, std::memory_order_relaxed) +
                          1) {
  ++thread_nodes;
}

Node::~Node() { --thread_nodes; }

Node::Node(uint64_t function, std::string name, std::vector<TensorSpec> outputs)
    : Node(Attrs(nullptr), &kUserFunctionRule) {
  EnsureUser().function = function;
  user->name = std::move(name);
  user->output_specs = std::move(outputs);
}

UserCode& Node::EnsureUser() {
  if (user == nullptr) user = std::make_unique<UserCode>();
  return *user;
}

size_t Node::num_outputs() const {
  if (is_leaf()) return 1;
  if (is_user_function()) return user->output_specs.size();
  return attrs_.schema().num_outputs;
}

const std::string& Node::name() const {
  return is_user_function() ? user->name : attrs_.schema().name;
}

void Node::Release() {
  if (packed()) {
    released_ = true;
    user->unpack = 0;
    user->packed.clear();
  }
  for (SavedValue& saved : saved_inputs) {
    released_ |= static_cast<bool>(saved.value);
    saved.value.reset();
  }
  for (SavedValue& saved : saved_outputs) {
    released_ |= static_cast<bool>(saved.value);
    saved.value.reset();
  }
}

void Node::Pack(uint64_t code) {
  std::vector<std::optional<TensorSpec>> packed(input_specs.size() +
                                                saved_outputs.size());
  bool any = false;
  const auto take = [&](SavedValue& saved, size_t place) {
    if (!saved.value) return;
    any = true;
    packed[place] = saved.value->spec();
    saved.value.reset();
  };
  for (size_t i = 0; i < saved_inputs.size(); ++i) take(saved_inputs[i], i);
  for (size_t i = 0; i < saved_outputs.size(); ++i) {
    take(saved_outputs[i], input_specs.size() + i);
  }
  if (!any) return;
  EnsureUser().unpack = code;
  user->packed = std::move(packed);
}

absl::Status Node::Unpack(Values values, OpSink& sink) {
  for (size_t place = 0; place < user->packed.size(); ++place) {
    const std::optional<TensorSpec>& spec = user->packed[place];
    if (!spec.has_value()) continue;
    Value value = place < values.size() ? std::move(values[place]) : Value();
    if (!value || value->spec().shape != spec->shape) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[", name(), "] an unpack hook must give back a tensor like the one ",
          "that was packed. Got ", value ? value->spec().ToString() : "None",
          " for ", spec->ToString()));
    }
    if (value->spec().dtype != spec->dtype) {
      Attrs attrs(&GetOp(OpId::to));
      attrs.Set("dtype", spec->dtype);
      absl::StatusOr<Values> converted =
          sink.Emit(attrs, {&value, 1}, /*record=*/false, /*inplace=*/false);
      if (!converted.ok()) return converted.status();
      value = std::move((*converted)[0]);
    }
    value = sink.Alias(value);
    const uint32_t version = value->version();
    if (place >= input_specs.size()) {
      saved_outputs[place - input_specs.size()] = {std::move(value), version};
      continue;
    }
    const Edge& edge = edges[place];
    if (edge) value->SetHistory(edge.node, edge.output);
    saved_inputs[place] = {std::move(value), version};
  }
  return absl::OkStatus();
}

void Node::ForgetUnpacked() {
  for (SavedValue& saved : saved_inputs) saved.value.reset();
  for (SavedValue& saved : saved_outputs) saved.value.reset();
}

void Node::Destroy() {
  // Deleting a node drops its inputs' nodes, directly and through saved
  // variables. They queue up here instead of nesting on the stack.
  thread_local Node* dead = nullptr;
  thread_local bool draining = false;
  next_dead_ = dead;
  dead = this;
  if (draining) return;
  draining = true;
  while (dead != nullptr) {
    Node* node = dead;
    dead = node->next_dead_;
    delete node;
  }
  draining = false;
}

const Node* FindRecorded(const Edge& edge, uint64_t op_sequence) {
  std::vector<const Node*> ahead = {edge.node.get()};
  absl::flat_hash_set<const Node*> seen;
  while (!ahead.empty()) {
    const Node* node = ahead.back();
    ahead.pop_back();
    if (node == nullptr || node->is_leaf() || !seen.insert(node).second) {
      continue;
    }
    if (node->op_sequence == op_sequence && !node->is_user_function()) {
      return node;
    }
    // An op's inputs were recorded before it.
    if (node->op_sequence != 0 && node->op_sequence < op_sequence) continue;
    for (const Edge& next : node->edges) ahead.push_back(next.node.get());
  }
  return nullptr;
}

RefPtr<Node> BeginRecord(const Attrs& attrs, absl::Span<const Value> inputs) {
  const GradRule* rule = FindGradRule(attrs.schema().id);
  RefPtr<Node> node = MakeRef<Node>(attrs, rule);
  const size_t n = inputs.size();
  node->edges.reserve(n);
  node->input_specs.reserve(n);
  for (const Value& input : inputs) {
    if (!input) {
      node->edges.emplace_back();
      node->input_specs.emplace_back();
      continue;
    }
    if (input->requires_grad()) {
      node->edges.emplace_back(input->GradientEdge());
      node->input_specs.emplace_back(input->spec());
    } else {
      node->edges.emplace_back();
      if (rule->all_specs) {
        node->input_specs.emplace_back(input->spec());
      } else {
        node->input_specs.emplace_back();
      }
    }
  }
  if (rule->saved_inputs == 0) return node;
  const uint32_t mask = InputsToSave(*rule, *node);
  if (mask == 0) return node;
  node->saved_inputs.resize(n);
  for (size_t i = 0; i < n; ++i) {
    if (inputs[i] && IsSaved(mask, i)) {
      node->saved_inputs[i] = {inputs[i], inputs[i]->version()};
    }
  }
  return node;
}

absl::StatusOr<RefPtr<Node>> BeginRecordInplace(const Attrs& attrs,
                                                absl::Span<const Value> inputs,
                                                OpSink& sink) {
  RefPtr<Node> node = BeginRecord(attrs, inputs);
  if (node->saved_inputs.empty() || !node->saved_inputs[0].value) return node;
  const Attrs clone(&GetOp(OpId::clone));
  absl::StatusOr<Values> copy =
      sink.Emit(clone, inputs.first(1), /*record=*/true, /*inplace=*/false);
  if (!copy.ok()) return copy.status();
  // Another operand may be the same variable (x.mul_(x)).
  for (size_t i = 0; i < inputs.size(); ++i) {
    SavedValue& saved = node->saved_inputs[i];
    if (saved.value == inputs[0]) saved = {(*copy)[0], (*copy)[0]->version()};
  }
  return node;
}

void EndRecord(const RefPtr<Node>& node, OpSink& sink,
               absl::Span<const Value> outputs) {
  const uint32_t mask = node->rule().saved_outputs;
  if (mask != 0) node->saved_outputs.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Value& output = outputs[i];
    const bool differentiable = IsDifferentiable(output->spec().dtype);
    if (IsSaved(mask, i)) {
      node->saved_outputs[i] = {differentiable ? sink.Alias(output) : output,
                                output->version()};
    }
    if (!differentiable) continue;
    output->SetHistory(node, static_cast<uint32_t>(i));
  }
}

}  // namespace holdfast
