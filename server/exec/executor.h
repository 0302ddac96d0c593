// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Executor: applies one session's commands in order. It believes no client:
// every field is checked, a command that breaks a rule spoils only the handles
// it promised, and only a broken protocol (an error from Apply) ends the
// session.
//
// The batch is the window of queued ops: a pass that fuses or drops ops would
// rewrite the commands between decoding and RunOp.
// Thread-safety: worker thread only, but for AllocateBlock, memory().
#ifndef HOLDFAST_SERVER_EXEC_EXECUTOR_H_
#define HOLDFAST_SERVER_EXEC_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/holdfast.pb.h"
#include "server/exec/device.h"
#include "server/exec/op_runner.h"
#include "server/exec/tensor_store.h"
#include "server/memory/caching_allocator.h"

namespace holdfast {

// Bytes of a finished upload or a waiting download.
using SharedBytes = std::shared_ptr<std::vector<uint8_t>>;

// Where an executor's results go: its session.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  virtual void Reply(v1::ReadResult result) = 0;
  virtual absl::StatusOr<uint64_t> AddDownload(SharedBytes bytes) = 0;
  virtual absl::StatusOr<SharedBytes> TakeUpload(uint64_t id) = 0;
};

class Executor {
 public:
  struct Options {
    bool local = false;  // the client maps our memory
    uint64_t memory_limit_bytes = 0;
    uint64_t inline_limit_bytes = 1 << 20;
  };
  // `device` and `sink` must outlive the executor.
  Executor(Device* device, ReplySink* sink, Options options);
  ~Executor();

  // Applies one command. An error: the client broke the protocol.
  absl::Status Apply(const v1::Command& command);

  // Any thread: a block for the client to fill; Put adopts it.
  absl::StatusOr<v1::Block> AllocateBlock(uint64_t bytes);
  const CachingAllocator& memory() const { return memory_; }

  // A new client process takes over: drops every handle, lists what was kept
  // under fresh handles.
  void Reattach();
  void ListKept(v1::HelloReply* reply) const;
  // Frees everything: tensors, blocks, segments.
  void Clear();
  // First handle that was never promised.
  uint64_t next_handle() const { return highest_handle_ + 1; }
  size_t tensors() const { return store_.size(); }
  uint64_t ops_run() const { return runner_.ops_run(); }

 private:
  struct KeptTensor {
    uint64_t handle;
    Value tensor;
  };
  using Inputs = absl::InlinedVector<Value, 4>;

  // Each returns protocol errors only; failures of the op are stored.
  absl::Status ApplyOp(const v1::OpCall& call);
  absl::Status ApplyPut(const v1::Put& put);
  absl::Status ApplySetRequiresGrad(const v1::SetRequiresGrad& request);
  absl::Status ApplyBackward(const v1::Backward& backward);
  absl::Status ApplyRead(const v1::Read& read);
  absl::Status ApplyKeep(const v1::Keep& keep);

  // The op itself.
  absl::Status RunOp(const v1::OpCall& call, const Attrs& attrs,
                     const Inputs& inputs, Values* outputs);
  absl::StatusOr<RefPtr<Tensor>> MakeFromPut(const v1::Put& put);
  absl::Status RunBackwardTo(const v1::Backward& backward,
                             std::vector<Value>* gradients);
  absl::Status StoreGradient(const v1::Backward::Target& target,
                             const Value& tensor, Value gradient,
                             const v1::Backward& backward);
  absl::Status FillRead(const v1::Read& read, const Value& tensor,
                        v1::ReadResult* result);

  // Checks that a handle may be promised now and notes it.
  absl::Status Promise(uint64_t first, int count);
  // A tensor for use: its failure if it has one.
  absl::StatusOr<Value> Resolve(uint64_t handle, FailurePtr* failure) const;
  FailurePtr NewFailure(const absl::Status& status, const std::string& op);
  void ReportFailure(OpFailure& failure, v1::Status* status);

  Device* const device_;
  ReplySink* const sink_;
  const Options options_;
  CachingAllocator memory_;  // outlives every tensor below
  CachingAllocator guard_;   // memory that the client does not see
  OpRunner runner_;
  TensorStore store_;
  std::map<std::string, KeptTensor> kept_;
  uint64_t highest_handle_ = 0;
  uint64_t op_sequence_ = 0;
  FailurePtr unreported_;  // first failure no read has told yet

  std::mutex blocks_mutex_;
  uint64_t next_block_ = 1;
  // Blocks handed to the client and not yet adopted.
  absl::flat_hash_map<uint64_t, MemoryBlock*> blocks_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_EXECUTOR_H_
