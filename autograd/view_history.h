// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ViewHistory: the gradient history that a tensor and its views share. An
// in-place op on any of them changes what all of them depend on. The history
// of the whole tensor is the truth; a view that was not the one written reads
// its own from there when it is used next (PyTorch's CopySlices and lazily
// made grad_fn, said in two ordinary ops: as_strided and as_strided_scatter).
// Thread-safety: one thread at a time (the session's executor).
// Ownership: handles own it. Nodes never do: what they saved would own them.
#ifndef HOLDFAST_AUTOGRAD_VIEW_HISTORY_H_
#define HOLDFAST_AUTOGRAD_VIEW_HISTORY_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/op_sink.h"
#include "autograd/variable.h"
#include "ops/ref_counted.h"
#include "ops/tensor_spec.h"

namespace holdfast {

class ViewHistory final : public RefCounted {
 public:
  // Of the tensor `whole`, which is no view of another.
  ViewHistory(TensorSpec whole, Edge edge)
      : whole_(std::move(whole)), edge_(std::move(edge)) {}

  // Recorded writes so far: a handle that has seen fewer is stale.
  uint32_t writes() const { return writes_; }
  // Where the gradient of the whole tensor goes; null if nowhere.
  const Edge& edge() const { return edge_; }
  // The whole is a leaf that requires a gradient: recorded writes are refused.
  bool leaf_requires_grad() const;

  // The whole became a leaf that requires a gradient, or no longer does.
  void SetLeaf(Edge edge) { edge_ = std::move(edge); }
  // A recorded op wrote the whole; its result's gradient goes to `edge`.
  void WriteWhole(Edge edge);
  // A recorded op wrote the part that `view` sees. Unimplemented where a view
  // shows elements as another dtype.
  absl::Status WriteView(const TensorSpec& view, Edge edge, OpSink& sink);
  // Where the gradient of a view goes, given all writes so far. Errors as
  // WriteView's.
  absl::StatusOr<Edge> ReadView(const TensorSpec& view) const;

 protected:
  ~ViewHistory() override = default;

 private:
  const TensorSpec whole_;
  Edge edge_;
  uint32_t writes_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_AUTOGRAD_VIEW_HISTORY_H_
