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
// Thread-safety: worker thread only, but for AllocateBlock, FindSegment,
// Cancel and memory().
#ifndef HOLDFAST_SERVER_EXEC_EXECUTOR_H_
#define HOLDFAST_SERVER_EXEC_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "autograd/engine.h"
#include "autograd/tape.h"
#include "kernels/device.h"
#include "proto/holdfast.pb.h"
#include "proto/steady_time.h"
#include "server/exec/enqueued_work.h"
#include "server/exec/host_staging.h"
#include "server/exec/kept_tensors.h"
#include "server/exec/op_runner.h"
#include "server/exec/profile_buffer.h"
#include "server/exec/published_tensors.h"
#include "server/exec/session_devices.h"
#include "server/exec/shared_storages.h"
#include "server/exec/tensor_store.h"
#include "server/memory/caching_allocator.h"
#include "server/memory/heap_meter.h"

namespace holdfast {

// Bytes of a finished upload or a waiting download, which have a charge of
// their own: no session's HeapMeter counts them.
using SharedBytes = std::shared_ptr<std::vector<uint8_t>>;
SharedBytes NewSharedBytes();

// Where an executor's results go: its session.
class ReplySink {
 public:
  virtual ~ReplySink() = default;
  virtual void Reply(v1::ReadResult result) = 0;
  virtual void Call(v1::BackwardCall call) = 0;
  virtual absl::StatusOr<uint64_t> AddDownload(SharedBytes bytes) = 0;
  virtual absl::StatusOr<SharedBytes> TakeUpload(uint64_t id) = 0;
  // A tensor of another session.
  virtual absl::StatusOr<Value> FindInherited(const v1::Inherited& from) = 0;
};

class Executor {
 public:
  struct Options {
    bool local = false;     // the client maps our memory
    bool mappable = false;  // some client may: implied by `local`
    uint64_t memory_limit_bytes = 0;
    // 0: no limit, for both.
    uint64_t max_handles = 0;
    uint64_t max_graph_nodes = 0;
    std::string user;                        // whose session it is
    std::shared_ptr<MemoryAccount> account;  // whose memory it is; may be null
    uint64_t inline_limit_bytes = 1 << 20;
    StreamId stream = 0;  // the device's; the executor destroys it
    int priority = 0;     // of the session's further streams
    // The daemon's others, in their order.
    std::vector<Device*> further_devices;
    // The daemon's; null: of its own.
    std::shared_ptr<SharedStorages> shared;
    std::shared_ptr<PublishedTensors> names;
  };
  // `device`, the session's home (session_devices.h), the others and `sink`
  // must outlive the executor.
  Executor(Device* device, ReplySink* sink, Options options);
  ~Executor();

  // Books heap and tape nodes on the session while it lives. Whatever works for
  // the session on the worker thread has one; they may be nested.
  class Counting {
   public:
    explicit Counting(Executor* executor)
        : executor_(executor),
          heap_(&executor->heap_),
          nodes_(NodesOfThread() - executor->nodes_) {}
    ~Counting() { executor_->nodes_ = NodesOfThread() - nodes_; }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;

   private:
    Executor* const executor_;
    const HeapMeter::Scope heap_;
    const int64_t nodes_;
  };
  // Any thread: handles, graph, events and all else of the session that is
  // neither its tensors' memory nor its transport's.
  int64_t heap_bytes() const { return heap_.bytes(); }
  // Any thread; 0: no limit. What is there stays.
  void set_count_limits(uint64_t handles, uint64_t graph_nodes) {
    max_handles_.store(handles == 0 ? UINT64_MAX : handles);
    max_graph_nodes_.store(graph_nodes == 0 ? INT64_MAX : graph_nodes);
  }

  // Applies one command. An error: the client broke the protocol.
  absl::Status Apply(const v1::Command& command);
  // When the batch of the next commands came (ProfileNow); 0: not known.
  void set_batch_received(int64_t ns) { batch_received_ns_ = ns; }

  // A backward is under way: Continue before the next command. False while it
  // waits for the client, whose commands go on.
  bool busy() const {
    return !backwards_.empty() && !backwards_.back()->calling;
  }
  // Runs nodes of the backward until it is done, calls the client, or `yield`
  // says true. REQUIRES: busy().
  void Continue(absl::FunctionRef<bool()> yield);

  // Any thread: commands numbered at most `through` that have not run are
  // dropped, and a backward among them ends (CancelRequest). Until
  // ForgetCancel, for another client counts from 1.
  void Cancel(uint64_t through, std::string where);
  void ForgetCancel();

  // What another session copies, once this one has executed `op_sequence` ops.
  absl::StatusOr<Value> Lend(uint64_t handle, uint64_t op_sequence);

  // Any thread: a block for the client to fill; Put adopts it.
  absl::StatusOr<v1::Block> AllocateBlock(uint64_t bytes);
  // Any thread: memory that the client maps.
  absl::StatusOr<MemorySegment> FindSegment(uint64_t id) const;

  // What asynchronous devices have of the session (enqueued_work.h); devices
  // that work inside the call have nothing.
  bool asynchronous() const { return staging_.has_value(); }
  // Inside kernels `attendant` has its turn; null: nobody.
  void BeginSlice(SteadyTime now, Attendant* attendant) {
    devices_.SetStop(&stop_);
    stop_.set_attendant(attendant);
    stop_.Begin(StopSignal::kNone);
    if (asynchronous()) enqueued_.BeginSlice(now, runner_.ops_run());
  }
  void EndSlice() { devices_.SetStop(nullptr); }
  bool too_far_ahead(absl::Duration lead) {
    return asynchronous() && enqueued_.TooFar(runner_.ops_run(), lead);
  }
  void MarkWork() {
    if (asynchronous()) enqueued_.Mark(runner_.ops_run());
  }
  bool work_under_way() const { return enqueued_.under_way(); }
  SteadyTime work_since() const { return enqueued_.since(); }
  std::vector<DeviceUse> TakeDeviceUses() { return enqueued_.TakeUses(); }

  // Reads whose bytes are still on their way from the device, and whether the
  // first of them has arrived: FinishReads answers it and those behind it.
  bool awaits_device() const { return !reads_.empty(); }
  bool ReadArrived() const;
  void FinishReads();
  const CachingAllocator& memory() const { return memory_; }
  // Any thread: memory on devices other than the first, by their numbers.
  std::vector<std::pair<int, std::shared_ptr<CachingAllocator>>>
  further_memory() const {
    return devices_.opened();
  }
  // Any thread. What is held already stays.
  void set_memory_limit(uint64_t bytes) {
    memory_.set_limit_bytes(bytes);
    guard_.set_limit_bytes(bytes);
    if (staging_) staging_->set_limit_bytes(bytes);
    devices_.set_limit_bytes(bytes);
    heap_.set_limit_bytes(bytes);
  }

  // A new client process takes over: drops every handle, lists what was kept
  // under fresh handles. `local`: it maps our memory.
  // REQUIRES: !local or Options.mappable.
  void Reattach(bool local);
  void ListKept(v1::HelloReply* reply) const;
  // The same for the disk; and into a session without tensors.
  KeptTensors TakeKept();
  size_t kept() const { return kept_.size(); }
  void RestoreKept(KeptTensors kept);
  CachingAllocator* allocator() { return &memory_; }
  // Any thread: how long an op may take by estimate; 0: no limit.
  void set_op_seconds(double seconds) { runner_.set_most_seconds(seconds); }
  // Any thread: how its ops are told to stop, by their op sequence.
  StopSignal* stop() { return &stop_; }
  // Frees everything: tensors, blocks, segments. With `leave_mapped` what a
  // client maps goes with the executor: the client may still look at it.
  void Clear(bool leave_mapped = false);
  // First handle that was never promised.
  uint64_t next_handle() const { return highest_handle_ + 1; }
  size_t tensors() const { return store_.size(); }
  uint64_t op_sequence() const { return op_sequence_; }
  uint64_t ops_run() const { return runner_.ops_run(); }
  void set_keep_order(bool keep) { runner_.set_keep_order(keep); }
  // Commands that failed for want of memory, and what the last was told.
  uint64_t limit_hits() const { return limit_hits_; }
  const std::string& last_limit_hit() const { return last_limit_hit_; }
  // Ops that failed by a mistake of ours, and what the last was told, with the
  // stack of the check where that is known.
  uint64_t checks_failed() const { return checks_failed_; }
  const std::string& last_check_failed() const { return last_check_failed_; }

 private:
  struct KeptTensor {
    uint64_t handle;
    Value tensor;
  };
  using Inputs = absl::InlinedVector<Value, 4>;

  // A backward on its way. Later ones were asked for by user code that an
  // earlier one called, and end first.
  struct PendingBackward {
    v1::Backward request;
    uint64_t op_sequence = 0;
    std::vector<Value> targets;
    std::unique_ptr<BackwardPass> pass;
    bool calling = false;  // waits for the client's answer
  };

  // A read that waits for the devices to pass points.
  struct WaitingRead {
    SessionDevices::Points points;
    v1::ReadResult result;    // without the bytes
    RefPtr<Storage> staging;  // null: a barrier
    size_t bytes = 0;
    Value source;          // what a client maps stays as long as its tensor
    bool profile = false;  // it is one of the profile
    // No read: the copy of another process's memory, to be closed after it.
    std::shared_ptr<void> foreign;
  };

  // ---- executor_room.cc
  // The session may have no more handles or nodes: commands that make some
  // fail.
  bool full() const {
    return store_.size() >= max_handles_.load(std::memory_order_relaxed) ||
           nodes_ >= max_graph_nodes_.load(std::memory_order_relaxed) ||
           !heap_.refusal().ok();
  }
  absl::Status WhyFull() const;
  // What such a command's handles get. One for all, until the client is told.
  FailurePtr FullFailure(const std::string& op);
  // A client that goes on all the same. REQUIRES: full().
  absl::Status CheckSpent() const;

  // ---- executor_cancel.cc
  // Is the command that was counted last called back?
  bool cancelled(uint64_t sequence) const {
    return ABSL_PREDICT_FALSE(sequence <=
                              cancel_through_.load(std::memory_order_relaxed));
  }
  // The op of now writes what there was before. Before StopSignal::Begin.
  void NoteWriter() {
    writer_.store(op_sequence_, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  // What the handles of one get.
  FailurePtr DroppedFailure(const std::string& op, uint64_t sequence);
  void DropOp(const v1::OpCall& call, const OpSchema& schema);
  void DropBackward();  // REQUIRES: busy()
  // Before `command`: if all that is to be dropped is, in-place targets are
  // good again.
  void SettleDropped(const v1::Command& command);
  void TellDropped(v1::ReadResult* result);

  absl::Status ApplyCommand(const v1::Command& command);
  // Each returns protocol errors only; failures of the op are stored.
  absl::Status ApplyOp(const v1::OpCall& call);
  absl::Status ApplyPut(const v1::Put& put);
  absl::Status ApplySetRequiresGrad(const v1::SetRequiresGrad& request);
  absl::Status ApplyBackward(const v1::Backward& backward);
  absl::Status ApplyRecordFunction(const v1::RecordFunction& record);
  absl::Status ApplyRegisterHook(const v1::RegisterHook& request);
  absl::Status ApplyPackSaved(const v1::PackSaved& request);
  absl::Status ApplyRestoreOutput(const v1::RestoreOutput& request);
  absl::Status ApplyBackwardAnswer(const v1::BackwardAnswer& answer);
  absl::Status ApplyRead(const v1::Read& read);
  absl::Status ApplyPart(const v1::Part& part);
  absl::Status ApplyKeep(const v1::Keep& keep);
  absl::Status KeepItems(const v1::Keep& keep);
  void Forget(const std::string& name);
  void KeepUnder(const std::string& name, KeptTensor kept);
  // The result of an op without attributes that is not recorded.
  absl::StatusOr<Value> MadeBy(OpId op, const Value& tensor);
  // What is to be kept of a tensor: a copy of it, or itself.
  absl::StatusOr<Value> ToKeep(const Value& tensor, bool copy);
  // Whether kept_ and these may be listed in one reply.
  absl::Status CheckKept(const v1::Keep& keep) const;
  void SetNumerics(const v1::SetNumerics& wish);

  // ---- executor_sharing.cc
  absl::Status ApplyOpen(const v1::Open& open);
  absl::StatusOr<RefPtr<Tensor>> OpenShared(const v1::Open& open);
  // Replies with the token of the tensor's storage.
  void ShareStorage(const v1::Read& read, const Value& tensor,
                    v1::ReadResult* result);
  // Is it another session's memory, which our client cannot map?
  bool IsForeign(const Storage& storage) const {
    return storage.allocator() != &memory_;
  }

  // ---- executor_names.cc
  absl::Status ApplyNames(const v1::NameRequest& request);
  void AnswerNames(uint64_t id, absl::StatusOr<v1::NameReply> reply);
  // `*failure`: of a tensor that was never made.
  absl::Status Publish(const v1::Publish& request, PublishedTensors::Done done,
                       FailurePtr* failure);
  absl::Status TakeStorages(const std::vector<Value>& tensors,
                            PublishedVersion* version);
  absl::Status CopyTensors(const std::vector<Value>& tensors,
                           PublishedVersion* version);
  // Of a version: another user's session is seen to hold it.
  RefPtr<Storage> Lent(const RefPtr<Storage>& storage) const;
  // Makes handles for its tensors and tells them.
  void OpenVersion(uint64_t id, absl::StatusOr<PublishedPtr> version);

  // ---- executor_saved.cc
  absl::StatusOr<v1::NameReply> OpenSaved(const v1::SavedOf& request);

  // ---- executor_foreign.cc
  // Replies with the place of the tensor's storage, once the devices have done
  // what they were given.
  absl::Status ExportMemory(const Value& tensor, v1::ReadResult* result);
  absl::StatusOr<Value> CopyForeign(const v1::ForeignMemory& from,
                                    TensorSpec spec);

  // ---- executor_profile.cc
  absl::Status ApplyProfile(const v1::Profile& request);
  absl::Status ApplyReadProfile(const v1::Read& read);
  // Times on all the session's streams (Device::TimeWork), and what is done.
  void TimeWork(std::optional<uint64_t> tag);
  void NoteWork();
  void AnswerProfile(v1::ReadResult result);
  // ApplyCommand and ContinuePass, noted. REQUIRES: profiling_.
  absl::Status ApplyNoted(const v1::Command& command);
  void ContinueNoted(absl::FunctionRef<bool()> yield);

  // Runs the op and files its results.
  absl::Status RunAndFile(const v1::OpCall& call, const Inputs& inputs);
  // Gives what the op would have made or written its failure.
  void Spoil(const v1::OpCall& call, const OpSchema& schema,
             const FailurePtr& failure);
  // The op itself.
  absl::Status RunOp(const v1::OpCall& call, const Attrs& attrs,
                     const Inputs& inputs, Values* outputs);
  absl::StatusOr<Value> MakeFromPut(const v1::Put& put);
  // Memory for what a client sends, on the device that the spec names.
  absl::StatusOr<RefPtr<Tensor>> NewUploaded(const SessionDevice& at,
                                             TensorSpec spec);
  absl::Status UploadIntegers(const SessionDevice& at, const void* host,
                              Tensor* tensor);
  // ---- executor_inherit.cc
  absl::StatusOr<Value> CopyInherited(const v1::Inherited& from,
                                      const TensorSpec& spec);
  void ContinuePass(absl::FunctionRef<bool()> yield);
  // Hands the gradients over; drops the pass.
  void EndBackward(absl::Status status);
  void FailBackward(const v1::Backward& request, const FailurePtr& failure);
  // Sends what the pass wants to know.
  void CallClient(PendingBackward& backward);
  absl::Status StoreGradient(const v1::Backward::Target& target,
                             const Value& tensor, Value gradient,
                             const v1::Backward& backward);
  // Names the gradients that the client need not wait for any more, once.
  void ListLost(OpFailure& failure, v1::ReadResult* result) const;
  // `arrived` false: the read waits in reads_, and its result was taken.
  absl::Status FillRead(const v1::Read& read, const Value& tensor,
                        v1::ReadResult* result, bool* arrived);
  absl::Status ReadHostMemory(const v1::Read& read, const Value& tensor,
                              v1::ReadResult* result);
  absl::Status StartDownload(const v1::Read& read, const Value& tensor,
                             v1::ReadResult* result);
  // Replies once the devices have done what they were given so far.
  void AwaitDevices(v1::ReadResult result, Value source);
  // A contiguous tensor of the same elements.
  absl::StatusOr<Value> Gathered(const Value& tensor);
  absl::Status AddBytes(absl::string_view bytes, v1::ReadResult* result);
  void FinishRead(WaitingRead read);

  // Checks that a handle may be promised now and notes it.
  absl::Status Promise(uint64_t first, int count);
  // A tensor for use: its failure if it has one.
  // Its gradient history is the current one, whatever was written through
  // other views.
  absl::StatusOr<Value> Resolve(uint64_t handle, FailurePtr* failure);

  // ---- executor_views.cc. The handles are known.
  absl::Status RefreshHistory(TensorStore::Entry* entry);
  // Handle `view` is a view of handle `base`.
  void NoteView(uint64_t base, uint64_t view);
  // May a recorded op write it?
  absl::Status CheckWritable(uint64_t handle);
  // A recorded op wrote it: `written` is it with its new history.
  absl::Status NoteWrite(uint64_t handle, Value written);

  // `sequence` 0: of the command being applied.
  FailurePtr NewFailure(const absl::Status& status, const std::string& op,
                        uint64_t sequence = 0);
  void ReportFailure(OpFailure& failure, v1::Status* status);
  // For the log. `status` is not to have the payload any more.
  void NoteCheckFailed(absl::Status* status);

  Device* const device_;
  ReplySink* const sink_;
  void DropHandles();
  // Gives what is kept for reuse back to the devices; what a client may map,
  // too, unless `leave_mapped`.
  void ReleaseCached(bool leave_mapped = false);

  const Options options_;
  StopSignal stop_;  // outlives launches
  HeapMeter heap_;   // outlives what it counts
  int64_t nodes_ = 0;
  std::atomic<uint64_t> max_handles_{UINT64_MAX};
  std::atomic<int64_t> max_graph_nodes_{INT64_MAX};
  bool local_;  // the client of now maps our memory
  const std::shared_ptr<CachingAllocator> owned_memory_;
  CachingAllocator& memory_;  // outlives every tensor below
  const std::shared_ptr<SharedStorages> shared_;
  const std::shared_ptr<PublishedTensors> names_;
  // Another one for each client; what waits for an answer looks at it.
  std::shared_ptr<int> client_life_ = std::make_shared<int>();
  std::optional<HostStaging> staging_;  // where host code cannot see memory_
  CachingAllocator guard_;              // memory that the client does not see
  SessionDevices devices_;
  OpRunner runner_;
  TensorStore store_;
  EnqueuedWork enqueued_{&devices_};
  std::deque<WaitingRead> reads_;  // in the stream's order
  std::map<std::string, KeptTensor> kept_;
  std::vector<std::unique_ptr<PendingBackward>> backwards_;
  size_t kept_bytes_ = 0;  // what a list of them takes at most
  std::string parts_;      // of a command whose end is to come
  uint64_t highest_handle_ = 0;
  uint64_t server_handles_ = 0;  // given to the client with calls
  uint64_t op_sequence_ = 0;
  // PackSaved: its code, and the op it is about.
  uint64_t pack_code_ = 0;
  uint64_t pack_op_ = 0;
  FailurePtr full_failure_;  // see FullFailure
  FailurePtr unreported_;    // first failure no read has told yet
  // Of commands that were called back: so far; those behind whom others are
  // still to be dropped; gradients that no read has told.
  uint64_t cancelled_ = 0;
  std::vector<FailurePtr> dropped_;  // empty almost always
  std::vector<uint64_t> cancelled_gradients_;
  uint64_t limit_hits_ = 0;
  std::string last_limit_hit_;
  uint64_t checks_failed_ = 0;
  std::string last_check_failed_;
  std::unique_ptr<ProfileBuffer> profile_;  // until it is read
  bool profiling_ = false;                  // into profile_
  int64_t batch_received_ns_ = 0;

  std::atomic<uint64_t> cancel_through_{0};  // written under cancel_mutex_
  std::atomic<uint64_t> writer_{0};          // see NoteWriter
  std::mutex cancel_mutex_;
  std::string cancel_where_;  // guarded by it

  std::mutex blocks_mutex_;
  uint64_t next_block_ = 1;
  // Blocks handed to the client and not yet adopted.
  absl::flat_hash_map<uint64_t, MemoryBlock*> blocks_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_EXECUTOR_H_
