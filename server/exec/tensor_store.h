// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// TensorStore: a session's handles. A handle holds a tensor or the failure
// of the op that promised it; whatever uses the handle inherits that failure,
// so the user sees the first error, not its consequences.
//
// An op that writes in place and fails leaves its target's data as it was.
// The target's handle carries the failure until the client has been told,
// then it is usable again: a bad index does not cost anyone their weights.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_SERVER_EXEC_TENSOR_STORE_H_
#define HOLDFAST_SERVER_EXEC_TENSOR_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "autograd/op_sink.h"
#include "autograd/view_history.h"
#include "ops/ref_counted.h"
#include "server/exec/tensor.h"

namespace holdfast {

// The failure of one op, shared by all handles it spoiled.
struct OpFailure {
  absl::Status status;
  std::string op;
  uint64_t op_sequence = 0;
  uint64_t forward_op_sequence = 0;  // of a backward: the op behind it
  bool reported = false;
  std::vector<uint64_t> targets;    // in-place targets to restore when reported
  std::vector<uint64_t> gradients;  // handles that a backward did not make
};
using FailurePtr = std::shared_ptr<OpFailure>;

class TensorStore {
 public:
  struct Entry {
    Value tensor;  // null: never produced
    FailurePtr failure;
    // Once it has views, or is one: the history it shares with them.
    RefPtr<ViewHistory> history;
    uint32_t seen_writes = 0;  // of `history`, in the tensor's own
    bool is_view = false;
    // Host memory that the client maps, and nothing else of the handle is left.
    RefPtr<Storage> host_copy;
  };

  // Null when the handle is not there (never made, or released).
  const Entry* Find(uint64_t handle) const {
    const auto it = entries_.find(handle);
    return it == entries_.end() ? nullptr : &it->second;
  }
  Entry* Find(uint64_t handle) {
    const auto it = entries_.find(handle);
    return it == entries_.end() ? nullptr : &it->second;
  }
  bool Contains(uint64_t handle) const { return entries_.contains(handle); }

  Entry& Put(uint64_t handle, Value tensor) {
    Entry& entry = entries_[handle];
    entry = Entry();
    entry.tensor = std::move(tensor);
    return entry;
  }
  void PutFailure(uint64_t handle, FailurePtr failure) {
    Entry& entry = entries_[handle];
    entry = Entry();
    entry.failure = std::move(failure);
  }
  // The handle stands for that memory, until it is released; `failure` is what
  // else asks for it gets.
  void PutHostCopy(uint64_t handle, RefPtr<Storage> copy, FailurePtr failure) {
    PutFailure(handle, std::move(failure));
    entries_[handle].host_copy = std::move(copy);
  }
  // Marks an existing handle; its tensor stays for when the failure has been
  // reported. Keeps an earlier failure.
  void MarkFailed(uint64_t handle, const FailurePtr& failure);
  // The client has been told: in-place targets become usable again.
  void Reported(OpFailure& failure);

  // False when there was no such handle.
  bool Release(uint64_t handle) { return entries_.erase(handle) != 0; }
  void Clear() { entries_.clear(); }
  size_t size() const { return entries_.size(); }

 private:
  absl::flat_hash_map<uint64_t, Entry> entries_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_TENSOR_STORE_H_
