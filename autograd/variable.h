// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Variable: a tensor as autograd sees it: a spec, a place in the graph and a
// version, no device and no data. The server's Tensor derives from it.
// Thread-safety: one thread at a time (the session's executor).
// Ownership: a variable owns the node that made it; a node owns the nodes of
// its inputs and what it saved, never its own outputs.
#ifndef HOLDFAST_AUTOGRAD_VARIABLE_H_
#define HOLDFAST_AUTOGRAD_VARIABLE_H_

#include <cstdint>
#include <utility>

#include "ops/ref_counted.h"
#include "ops/tensor_spec.h"

namespace holdfast {

class Node;

// An edge of the graph: gradient `output` of `node`. A null node: no gradient
// flows here. Its special members live in variable.cc, where Node is complete,
// so that this header needs nothing of the tape.
struct Edge {
  Edge() noexcept;
  Edge(RefPtr<Node> target, uint32_t index);
  Edge(const Edge& other);
  Edge(Edge&& other) noexcept;
  Edge& operator=(const Edge& other);
  Edge& operator=(Edge&& other) noexcept;
  ~Edge();

  explicit operator bool() const { return static_cast<bool>(node); }

  RefPtr<Node> node;
  uint32_t output = 0;
};

class Variable : public RefCounted {
 public:
  const TensorSpec& spec() const { return spec_; }

  // True for leaves marked by the user and for results that depend on one.
  bool requires_grad() const { return requires_grad_; }
  // True for what no recorded op has made.
  bool is_leaf() const { return leaf_; }

  // Marks a leaf, or takes the mark away. REQUIRES: is_leaf().
  void SetLeafRequiresGrad(bool requires_grad);
  // Makes this the `output`th result of `node`. Call once, on a new variable.
  void SetHistory(RefPtr<Node> node, uint32_t output);

  // Where this variable's gradient goes; a null node if it needs none. Creates
  // the leaf's node on first use.
  const Edge& GradientEdge();

  // Writes to the storage so far; shared by all views of it.
  virtual uint32_t version() const = 0;
  // Op that wrote last ("add_"), for the error about changed saved tensors.
  virtual const char* last_writer() const = 0;

 protected:
  explicit Variable(TensorSpec spec);
  ~Variable() override;

  TensorSpec spec_;

 private:
  bool requires_grad_ = false;
  bool leaf_ = true;
  Edge edge_;
};

// Null: no tensor, or a zero gradient.
using Value = RefPtr<Variable>;

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_VARIABLE_H_
