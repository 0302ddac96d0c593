// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tape: one Node per recorded op, holding what its gradient rule saved
// and the edges to the nodes of its inputs. There is no list of nodes: a
// node lives as long as a result or a later node refers to it, so graphs that
// nobody can differentiate any more are freed at once.
// Thread-safety: one thread at a time per graph (the session's executor).
#ifndef HOLDFAST_AUTOGRAD_TAPE_H_
#define HOLDFAST_AUTOGRAD_TAPE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autograd/op_sink.h"
#include "autograd/variable.h"
#include "ops/attrs.h"

namespace holdfast {

struct GradRule;

// A value kept for backward with the version it had. A saved output keeps an
// alias without history, since the output itself would own this node.
struct SavedValue {
  Value value;
  uint32_t version = 0;
};

// The user's own code at a node: it runs where the user is (engine.h).
struct UserCode {
  struct Hook {
    uint32_t output;  // sees the gradient of this output, and may replace it
    uint64_t code;    // what the recording client called it; 0: removed
  };
  std::vector<Hook> hooks;     // in order of registration
  bool hooks_removed = false;  // some of them
  // A function recorded as one node; 0: the node is an op's or a leaf's.
  uint64_t function = 0;
  // Code that has what an op's node would save; 0: the node saves it itself.
  uint64_t unpack = 0;
  // What that was, per input and then per output; none: not saved.
  std::vector<std::optional<TensorSpec>> packed;
  std::string name;  // of the function, for messages
  std::vector<TensorSpec> output_specs;
};

// Nodes that this thread has made, less those that it has freed.
int64_t NodesOfThread();
// Back to what it was: what came in between was on another account.
void SetNodesOfThread(int64_t nodes);

class Node final : public RefCounted {
 public:
  // A leaf's node: gradients end here.
  Node() : Node(Attrs(nullptr), nullptr) {}
  // The node of one recorded op. `rule` lives forever.
  Node(const Attrs& attrs, const GradRule* rule);
  // The node of a function of the user's, which makes `outputs`.
  Node(uint64_t function, std::string name, std::vector<TensorSpec> outputs);

  bool is_leaf() const { return rule_ == nullptr; }
  bool is_user_function() const { return user && user->function != 0; }
  // REQUIRES of both: an op's node.
  const Attrs& attrs() const { return attrs_; }
  const GradRule& rule() const { return *rule_; }
  size_t num_outputs() const;
  // "mul", or the function's name. REQUIRES: !is_leaf().
  const std::string& name() const;
  // Order of recording within the process: greater than that of every node
  // its edges lead to. 0 for leaves.
  uint64_t sequence() const { return sequence_; }
  // True once saved values were freed; false for nodes that never saved any,
  // which may run again.
  bool released() const { return released_; }
  // Its saved values are with the user's code `user->unpack`.
  bool packed() const { return user && user->unpack != 0; }

  // Frees what was saved (after backward without retain_graph).
  void Release();
  // Lets go of what was saved, as `code` has it. If nothing was saved, nothing
  // happens.
  void Pack(uint64_t code);
  // What `code` has, per input and then per output, for one run of the rule.
  // Errors: a value that is needed and missing or of another shape. Those of
  // another dtype are converted. REQUIRES: packed().
  absl::Status Unpack(Values values, OpSink& sink);
  // The run is over.
  void ForgetUnpacked();

  absl::InlinedVector<Edge, 2> edges;  // per input
  // Per input; a default spec for inputs that need no gradient, unless the
  // rule asks for all: copies are what recording an op costs most.
  absl::InlinedVector<TensorSpec, 2> input_specs;
  absl::InlinedVector<SavedValue, 2> saved_inputs;   // as far as the rule asks
  absl::InlinedVector<SavedValue, 1> saved_outputs;  // likewise

  // Null for most.
  std::unique_ptr<UserCode> user;
  UserCode& EnsureUser();
  // The client's number of the op that was recorded; 0: none of the client's.
  uint64_t op_sequence = 0;

  // The engine's place for this node in the backward pass `visit_pass`.
  // Meaningless in any other pass.
  uint64_t visit_pass = 0;
  uint32_t visit_index = 0;

 protected:
  ~Node() override;
  // Frees chains of any length without recursion.
  void Destroy() override;

 private:
  Attrs attrs_;
  const GradRule* rule_;
  uint64_t sequence_;
  Node* next_dead_ = nullptr;
  bool released_ = false;
};

// The node of the client's op `op_sequence`, at `edge` or behind it; null: it
// is not there. Looks at the nodes that were recorded since.
const Node* FindRecorded(const Edge& edge, uint64_t op_sequence);

// Puts an executed op on the tape. Call in two steps so that an in-place op's
// inputs are saved before it writes.
//   1. before the kernel runs and before any version is bumped: BeginRecord
//      saves inputs (the rule says which);
//   2. after both: EndRecord saves outputs and sets their history.
// For an in-place op `outputs[0]` is an alias of `inputs[0]`: a variable's
// history never changes once it has one, so that a node that saved a variable
// cannot come to own itself. Integral outputs get no history. REQUIRES: some
// input requires a gradient, the op has a rule.
RefPtr<Node> BeginRecord(const Attrs& attrs, absl::Span<const Value> inputs);
// The same for an in-place op; if backward needs input 0, keeps a clone of it,
// as PyTorch does. (BeginRecord works too, but then backward reports that the
// op overwrote what it needs.) An error is the clone's.
absl::StatusOr<RefPtr<Node>> BeginRecordInplace(const Attrs& attrs,
                                                absl::Span<const Value> inputs,
                                                OpSink& sink);
void EndRecord(const RefPtr<Node>& node, OpSink& sink,
               absl::Span<const Value> outputs);

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_TAPE_H_
