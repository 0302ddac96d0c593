// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engine: runs gradient rules from the roots to the targets in reverse
// order of recording. A pass can be put aside after any node and taken up
// again: so that other sessions get their turn, and while the user's own code
// (functions, hooks) runs where the user is.
#ifndef HOLDFAST_AUTOGRAD_ENGINE_H_
#define HOLDFAST_AUTOGRAD_ENGINE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autograd/op_sink.h"
#include "autograd/tape.h"
#include "autograd/variable.h"

namespace holdfast {

// Payload of errors that one recorded op is behind: its Node::op_sequence, in
// decimal.
inline constexpr char kForwardOpPayload[] = "holdfast/forward_op";

struct BackwardOptions {
  bool retain_graph = false;  // keep saved tensors for another backward
  bool create_graph = false;  // record the gradient computation itself
  // Somebody answers calls of user code; otherwise hooks are passed over and a
  // function of the user's, or packed values, are an error.
  bool user_code = false;
  // After each node, look for NaN in what it computed; one is an error that
  // names the op.
  bool detect_anomaly = false;
};

// User code that a pass waits for.
struct UserCall {
  enum class Kind { kFunction, kHook, kUnpack };
  uint64_t code = 0;  // what the recording client called it
  Kind kind = Kind::kFunction;
  // A function: the gradients of its outputs, null for zero. A hook: the
  // gradient it may replace. kUnpack, which wants what a node saved: none.
  Values gradients;
};

struct PartGradient;  // grad_rule.h

class BackwardPass {
 public:
  enum class State { kRunning, kCalling, kDone };

  // Differentiates `roots` (weighted by `gradients`, one per root, of the
  // root's shape; null: ones, for a root of one element) with respect to
  // `targets` (leaves or intermediate results). `sink` must outlive the pass.
  BackwardPass(OpSink& sink, std::vector<Value> roots,
               std::vector<Value> gradients, std::vector<Value> targets,
               const BackwardOptions& options);
  // A pass may run inside another's call; it must be gone before that one
  // goes on.
  ~BackwardPass();
  BackwardPass(const BackwardPass&) = delete;
  BackwardPass& operator=(const BackwardPass&) = delete;

  // Runs until it is done, user code is wanted, or `yield`, asked after each
  // node, says true. REQUIRES: not kCalling, and no error before.
  // Errors: a root or target that needs no gradient, a root of several elements
  // without gradient, a graph already freed, a saved tensor that changed; the
  // graph may then be partly freed.
  absl::StatusOr<State> Run(absl::FunctionRef<bool()> yield);

  // Node::op_sequence of the node that runs, for what is emitted meanwhile; 0:
  // none does.
  uint64_t running_op() const { return running_op_; }

  // REQUIRES: kCalling.
  const UserCall& call() const { return call_; }
  // The node whose function is called, null for other code. REQUIRES: kCalling.
  const RefPtr<Node>& called_node() const { return called_node_; }
  // Of a function: a gradient per input, null for none. Of a hook: the gradient
  // to go on with, null for the same. Of kUnpack: Node::Unpack's values. Ends
  // kCalling. Errors: as Run's.
  absl::Status Answer(Values values);

  // One gradient per target, null where no path leads; where a path leads but
  // only zeros flow, zeros. Each has its target's shape and dtype. Only nodes
  // on a path from a root to a target have run. The results may share storage
  // with each other, with `gradients` and with what the user can reach, and may
  // be expanded views: whoever writes to one must clone it first. With
  // create_graph they carry a history. REQUIRES: kDone; once.
  std::vector<Value> TakeResults() { return std::move(results_); }
  // Per target, true where nothing flows, not even zeros: functions of the
  // user's answered with no gradient. REQUIRES: kDone; once.
  std::vector<bool> TakeUnused() { return std::move(unused_); }

 private:
  // The gradient of one output of a node while it collects its parts.
  struct Slot {
    Value value;
    // Made by this engine itself and seen by nobody else: further parts may be
    // added in place.
    bool owned = false;
  };
  // What one pass knows about a node.
  struct Task {
    explicit Task(Node* n)
        : node(n), outer_pass(n->visit_pass), outer_index(n->visit_index) {}
    Node* node;
    uint64_t outer_pass;  // what the node said before, put back at the end
    uint32_t outer_index;
    bool wanted = false;  // leads to a target or is one's node
    bool leads = false;   // leads to a target: has to run
    bool walked = false;
    bool queued = false;
    bool zero = false;  // a rule said that some part of its gradient is zero
    uint32_t hooks_run = 0;
    int32_t first_place = -1;  // its targets: a list through TargetPlace::next
    absl::InlinedVector<Slot, 1> slots;  // per output
  };
  struct TargetPlace {
    uint32_t task;
    uint32_t output;
    int32_t next;  // another target of the same task, or -1
  };

  absl::Status Start();
  absl::Status Finish();
  // What zeros reach, from the nodes that were told so.
  void SpreadZeros();
  absl::Status AddTargets();
  absl::Status AddRoots();
  // Finds the nodes below the roots and which of them lead to a target.
  void Explore();
  // Runs the node, or sets calling_ where user code comes first.
  absl::Status RunNode(uint32_t index);
  // Runs the rule of an op's node, whose saved values are there.
  absl::Status RunRule(uint32_t index);
  // With the op that the user called, which `status` is about.
  static absl::Status WithForwardOp(absl::Status status, const Node& node);
  absl::Status AnswerHook(Values values);
  absl::Status AnswerUnpack(Values values);
  // Sets calling_ if a hook of the node has yet to see its gradient.
  void CallNextHook(uint32_t index);
  Values TakeGradients(Task& task);
  // Hands the gradients of a node's inputs on.
  absl::Status Pass(Node* node, absl::Span<Value> results);
  // Adds `grad` to what `edge` has received; queues its node.
  absl::Status Deliver(const Edge& edge, Value grad);
  // The same of a gradient that is for a part of it: `view` takes that part.
  absl::Status DeliverPart(const Edge& edge, const Attrs& view,
                           const PartGradient& part);
  Slot& SlotOf(const Edge& edge);
  // A gradient has come for the node of `edge`.
  void Queue(const Edge& edge);
  absl::StatusOr<Value> Emit(const Attrs& attrs, absl::Span<const Value> inputs,
                             bool inplace);
  absl::StatusOr<Value> Filled(const TensorSpec& like, int64_t value);
  absl::Status CheckNoNaN(const Node& node, absl::Span<const Value> results);
  // A user's function returned `grad` for this input: as it must be.
  absl::StatusOr<Value> Fit(const Node& node, size_t input, Value grad);
  // What user code gave, on the device of what it gave it for.
  absl::StatusOr<Value> Moved(Value grad, int device);
  // Takes what the targets at this task have received.
  void Capture(const Task& task);

  bool seen(const Node& node) const { return node.visit_pass == number_; }
  // The node's task, made on first sight.
  uint32_t TaskOf(Node* node);
  bool wanted(const Edge& edge) const;

  OpSink& sink_;
  const BackwardOptions options_;
  const uint64_t number_;
  std::vector<Value> root_values_;
  std::vector<Value> gradients_;
  std::vector<Value> targets_;
  bool started_ = false;
  bool calling_ = false;
  uint64_t running_op_ = 0;
  bool none_answered_ = false;  // by a function of the user's
  uint32_t calling_task_ = 0;
  UserCall call_;
  RefPtr<Node> called_node_;
  std::vector<Task> tasks_;
  std::vector<TargetPlace> places_;  // per target
  std::vector<Value> results_;       // per target
  std::vector<bool> unused_;         // per target
  std::vector<Edge> roots_;          // keeps the graph alive
  // Heap of runnable tasks, latest recorded first. A node's users were all
  // recorded after it, so when it comes up its gradient is complete: the order
  // makes counting dependencies unnecessary.
  std::vector<std::pair<uint64_t, uint32_t>> ready_;
};

// The whole of a pass without user code. Uses no recursion, and
// O(nodes + edges) time but for the order of the ready nodes (a heap of them).
// Thread-safety: one thread at a time per graph. Blocks as long as `sink` does.
absl::StatusOr<std::vector<Value>> RunBackward(
    OpSink& sink, absl::Span<const Value> roots,
    absl::Span<const Value> gradients, absl::Span<const Value> targets,
    const BackwardOptions& options);

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_ENGINE_H_
