// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: gradient histories of tensors that share memory.
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/exec/executor.h"

namespace holdfast {
namespace {

// The variable with another history, over the same memory.
Value WithHistory(OpRunner& runner, const Value& tensor, const Edge& edge) {
  Value fresh = runner.Alias(tensor);
  if (edge) fresh->SetHistory(edge.node, edge.output);
  return fresh;
}

}  // namespace

absl::Status Executor::RefreshHistory(TensorStore::Entry* entry) {
  const bool leaf = entry->tensor->is_leaf() && entry->tensor->requires_grad();
  // What the user marked stays a leaf.
  if (!leaf) {
    absl::StatusOr<Edge> edge =
        entry->is_view ? entry->history->ReadView(entry->tensor->spec())
                       : absl::StatusOr<Edge>(entry->history->edge());
    if (!edge.ok()) return edge.status();
    entry->tensor = WithHistory(runner_, entry->tensor, *edge);
  }
  entry->seen_writes = entry->history->writes();
  return absl::OkStatus();
}

void Executor::NoteView(uint64_t base, uint64_t view) {
  TensorStore::Entry* from = store_.Find(base);
  if (from == nullptr || !from->tensor) return;
  if (!from->history) {
    from->history = MakeRef<ViewHistory>(from->tensor->spec(),
                                         from->tensor->GradientEdge());
  }
  TensorStore::Entry* to = store_.Find(view);
  to->history = from->history;
  to->seen_writes = from->history->writes();
  to->is_view = true;
}

absl::Status Executor::CheckWritable(uint64_t handle) {
  const TensorStore::Entry* entry = store_.Find(handle);
  if (!entry->is_view || !entry->history->leaf_requires_grad()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a view of a leaf Variable that requires grad is being used in an "
      "in-place operation. Got ",
      entry->tensor->spec().ToString()));
}

absl::Status Executor::NoteWrite(uint64_t handle, Value written) {
  TensorStore::Entry* entry = store_.Find(handle);
  const Edge& edge = written->GradientEdge();
  if (entry->history && entry->is_view) {
    absl::Status s = entry->history->WriteView(written->spec(), edge, runner_);
    if (!s.ok()) return s;
  } else if (entry->history) {
    entry->history->WriteWhole(edge);
  }
  if (entry->history) entry->seen_writes = entry->history->writes();
  entry->tensor = std::move(written);
  return absl::OkStatus();
}

}  // namespace holdfast
