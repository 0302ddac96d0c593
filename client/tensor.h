// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensor: the client's handle to a tensor that lives on the server. Copies
// are cheap and share the handle; the server frees the tensor as soon as
// the last copy (and every view and saved gradient) is gone. The spec is known
// at once (sizes that depend on data: when somebody asks); the elements only
// after a read.
// Thread-safety: const methods from any thread; the session serialises ops.
#ifndef HOLDFAST_CLIENT_TENSOR_H_
#define HOLDFAST_CLIENT_TENSOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "client/graph.h"
#include "client/inference_mode.h"
#include "ops/ref_counted.h"
#include "ops/tensor_spec.h"

namespace holdfast::client {

class Session;
struct KnownIntegers;  // known_integer.h

// What the client knows about a storage; shared by a tensor and its views.
// `detach` starts a new one over the same memory, since in-place writes on
// either side must not enter the other's gradient history; so does `.data`,
// whose writes are not even counted on the other side.
struct StorageState final : public RefCounted {
  StorageState() = default;
  StorageState(const RefPtr<StorageState>& detached_from, bool own_versions);
  ~StorageState() override;

  // Some NumPy array may look at this memory: ops that touch it are waited
  // for, so that the user sees aliasing, not a race.
  bool exported() const {
    return memory().exports.load(std::memory_order_relaxed) != 0;
  }
  const StorageState& memory() const { return base ? *base : *this; }
  StorageState& memory() { return base ? *base : *this; }

  // In-place writes sent so far (Tensor._version). Guarded by the session's
  // lock.
  uint32_t& version() {
    return counted_by ? counted_by->own_version : own_version;
  }
  uint32_t own_version = 0;
  RefPtr<StorageState> counted_by;  // null: itself

  // Of memory(): its size as far as it is known here, else -1.
  int64_t bytes = -1;
  // Of memory(): somebody has its address, for as long as it lives.
  std::shared_ptr<void> address_hold;
  // Memory of another session, which is read by copy: it cannot be mapped.
  bool foreign = false;
  // The name that it is published as, where nobody may write it; else null.
  std::shared_ptr<const std::string> read_only;
  // Another session may have it.
  std::atomic<bool> shared{false};

  // Made in inference mode; of memory() only. Outside of the mode nobody may
  // write to it, or have gradients of it.
  const bool inference = InferenceMode();

  // Kept for the language layer, which may tie other memory to this.
  std::shared_ptr<void> mirror;

  // Writes that this session sent or may have made, through any alias; of
  // memory() only.
  std::atomic<uint32_t> writes{0};
  // Arrays and buffers that look at the memory now.
  std::atomic<int32_t> exports{0};
  // Whose memory this is, after `detach`; null: its own.
  RefPtr<StorageState> base;
  // Gradient history of in-place writes through any alias (graph.h). Guarded
  // by the session's lock.
  RefPtr<GraphNode> written_by;
};

// The shared part of a Tensor. Its destructor appends the release of the
// handle to the session's stream.
class TensorState final : public RefCounted {
 public:
  TensorState(std::shared_ptr<Session> session, uint64_t handle,
              TensorSpec spec, RefPtr<StorageState> storage);

  const std::shared_ptr<Session>& session() const { return session_; }
  uint64_t handle() const { return handle_; }
  // While pending(): dtype, rank and some sizes count, the others are
  // kUnknownSize.
  const TensorSpec& spec() const { return spec_; }
  // The sizes depend on data and are not known yet; Session::Settle waits for
  // them.
  bool pending() const { return pending_.load(std::memory_order_acquire); }
  // The session's: takes in what it learned. REQUIRES: pending(), a shape of
  // the same rank, and that no other thread settles it.
  void Settle(absl::Span<const int64_t> shape);
  const RefPtr<StorageState>& storage() const { return storage_; }

  // True also where only an in-place write through an alias (a view of it, or
  // what it is a view of) brought a gradient history.
  bool NeedsGrad() const { return requires_grad || storage_->written_by; }

  // Gradient bookkeeping, guarded by the session's lock. Change it with
  // Session's methods.
  bool requires_grad = false;  // leaf mark, or some input required one
  bool is_leaf = true;
  bool retains_grad = false;
  // A view made while gradients were off, of something that may need them: an
  // in-place op would lose what it was before.
  bool made_without_grad = false;
  // The same of a view made in inference mode, of a tensor that needs them.
  bool made_in_inference = false;
  RefPtr<GraphNode> node;  // null iff !requires_grad
  // A leaf's, while its mark is taken away: graphs recorded before lead there.
  RefPtr<GraphNode> unmarked_node;
  // Elements that need no read; most tensors have none.
  std::unique_ptr<KnownIntegers> known;
  RefPtr<TensorState> grad;  // leaf (or retained) gradient, null: None

 protected:
  ~TensorState() override;

 private:
  std::shared_ptr<Session> session_;
  uint64_t handle_;
  TensorSpec spec_;
  std::atomic<bool> pending_;
  RefPtr<StorageState> storage_;
};

// What a gradient of `tensor` would flow to.
void AddGraphEdges(const TensorState& tensor, GraphEdges* edges);

// Null by default.
using Tensor = RefPtr<TensorState>;

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_TENSOR_H_
