// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionCore: the session, whatever the transport: names tensors, encodes
// commands in order, keeps the gradient graph's shadow, matches reads with
// their results.
//
// Locks: `mutex_` makes the stream of commands (handles, graph, pending
// releases); `reads_mutex_` guards the reads. Neither is taken inside the
// other. A Tensor must never be dropped under `mutex_`, since its destructor
// takes it: whoever replaces one keeps the old one until after the lock.
#ifndef HOLDFAST_CLIENT_SESSION_CORE_H_
#define HOLDFAST_CLIENT_SESSION_CORE_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/optimization.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "client/batch_writer.h"
#include "client/connection.h"
#include "client/device_mappings.h"
#include "client/export_hold.h"
#include "client/fork_guard.h"
#include "client/numerics.h"
#include "client/op_cost.h"
#include "client/private_daemon.h"
#include "client/run_ahead.h"
#include "client/session.h"
#include "proto/profile_clock.h"
#include "proto/steady_time.h"

namespace holdfast::client {

inline constexpr uint32_t kNoSuchOp = ~0u;

class SessionCore final : public Session {
 public:
  // `daemon`: what must live as long as the session (a private daemon), or
  // null. Fails where the server's op table cannot be understood.
  static absl::StatusOr<std::shared_ptr<Session>> Create(
      std::unique_ptr<Connection> connection, std::string address,
      std::shared_ptr<PrivateDaemon> daemon, double timeout_seconds,
      double run_ahead_seconds = std::numeric_limits<double>::infinity());
  ~SessionCore() override;

  absl::Status Apply(const Attrs& attrs, absl::Span<const Tensor> inputs,
                     bool inplace, bool record, absl::Span<Tensor> outputs,
                     RandomStream* random,
                     const std::shared_ptr<UserCode>* unpack) override;
  absl::StatusOr<SavedMasks> Saved(const OpSchema& schema,
                                   absl::Span<const Tensor> inputs) override;
  using Session::Apply;
  absl::StatusOr<Tensor> Put(DType dtype, absl::Span<const int64_t> shape,
                             const void* data, int device,
                             BlockMarks* marks) override;
  using Session::Put;
  absl::StatusOr<std::pair<Tensor, ReadValue>> PutShared(
      DType dtype, absl::Span<const int64_t> shape) override;

  absl::StatusOr<Tensor> Inherit(const Tensor& tensor) override;

  absl::Status SetRequiresGrad(const Tensor& tensor, bool value) override;
  absl::Status RetainGrad(const Tensor& tensor) override;
  void ShowAs(const Tensor& result, const char* name,
              absl::Span<const Tensor> inputs) override;
  Tensor GetGrad(const Tensor& tensor) override;
  absl::Status SetGrad(const Tensor& tensor, Tensor gradient) override;
  absl::Status Backward(absl::Span<const Tensor> roots,
                        absl::Span<const Tensor> gradients,
                        absl::Span<const Tensor> inputs,
                        const BackwardOptions& options) override;
  absl::StatusOr<std::vector<Tensor>> Grad(absl::Span<const Tensor> outputs,
                                           absl::Span<const Tensor> gradients,
                                           absl::Span<const Tensor> inputs,
                                           const BackwardOptions& options,
                                           bool allow_unused) override;
  bool DependsOnOthers(absl::Span<const Tensor> outputs,
                       absl::Span<const Tensor> inputs) override;

  absl::StatusOr<int64_t> RecordFunction(
      std::shared_ptr<UserCode> function, absl::Span<const Tensor> inputs,
      absl::Span<const Tensor> outputs, const std::vector<bool>& written,
      absl::Span<const Tensor> behind) override;
  absl::StatusOr<uint64_t> RegisterHook(
      const Tensor& tensor, std::shared_ptr<UserCode> hook) override;
  void RemoveHook(const Tensor& tensor, uint64_t number) override;
  absl::Status RestoreOutput(const Tensor& tensor,
                             const std::function<bool(const UserCode&)>& own,
                             uint32_t output) override;

  absl::StatusOr<uint64_t> StartRead(const Tensor& tensor, bool place) override;
  absl::StatusOr<ReadValue> WaitRead(
      uint64_t id, const std::function<bool()>& interrupted) override;
  absl::StatusOr<uintptr_t> Address(
      const Tensor& tensor, const std::function<bool()>& interrupted) override;
  bool ReadReady(uint64_t id) override;
  KnownInteger FindInteger(const Tensor& tensor) override;
  void LearnIntegers(const Tensor& tensor, uint32_t writes,
                     std::vector<int64_t> values) override;
  absl::Status Settle(const Tensor& tensor,
                      const std::function<bool()>& interrupted) override;
  absl::Status Synchronize(const std::function<bool()>& interrupted) override;
  absl::StatusOr<uint64_t> Cancel(
      const std::string& where,
      const std::function<bool()>& interrupted) override;
  absl::Status AwaitRoom(const std::function<bool()>& interrupted) override;

  absl::StatusOr<std::string> Share(
      const Tensor& tensor, bool hold,
      const std::function<bool()>& interrupted) override;
  absl::StatusOr<Tensor> OpenShared(const std::string& token, TensorSpec spec,
                                    bool release_hold) override;

  absl::StatusOr<int> OrdinalOf(int device) override;
  absl::StatusOr<int> OrdinalOfMemory(const void* address) override;
  absl::StatusOr<DeviceArray> ExportMemory(
      const Tensor& tensor, const std::function<bool()>& interrupted) override;
  absl::StatusOr<Tensor> CopyMemory(
      const DeviceArray& array,
      const std::function<bool()>& interrupted) override;
  absl::Status ReadMemory(const DeviceArray& array, size_t bytes,
                          void* host) override;
  absl::Status AwaitProducer(int ordinal,
                             std::optional<uintptr_t> stream) override;

  absl::StatusOr<Published> Publish(
      const std::string& name,
      absl::Span<const std::pair<std::string, Tensor>> tensors,
      const PublishOptions& options,
      const std::function<bool()>& interrupted) override;
  absl::StatusOr<Found> Lookup(
      const std::string& name, uint64_t version, const std::string& owner,
      const std::function<bool()>& interrupted) override;
  absl::Status Unpublish(const std::string& name,
                         const std::function<bool()>& interrupted) override;
  absl::StatusOr<std::vector<Published>> ListPublished(
      const std::function<bool()>& interrupted) override;
  absl::StatusOr<SavedTensors> SavedOf(
      const Tensor& root, const GraphNode& node,
      const std::function<bool()>& interrupted) override;

  absl::Status StartProfile(const ProfileOptions& options,
                            const std::function<bool()>& interrupted) override;
  absl::StatusOr<Profile> StopProfile(
      const std::function<bool()>& interrupted) override;

  absl::Status SetRandom(RandomPlace place) override;
  absl::Status Keep(absl::Span<const KeepItem> items, bool copy) override;
  std::vector<std::string> KeptNames() override;
  std::vector<std::pair<std::string, Tensor>> Kept() override;
  absl::Status Close(bool keep) override {
    return Part(keep ? Parting::kDetach : Parting::kEnd);
  }
  std::optional<Left> CloseOrLeave() override;
  absl::Status SetName(const std::string& name, double grace_seconds) override;
  std::string name() const override { return connection_->place()->name(); }
  bool on_private_daemon() const override { return daemon_ != nullptr; }
  double grace_seconds() const override {
    return connection_->place()->grace_seconds();
  }
  absl::Status ResetPeakMemory() override;
  absl::Status ReleaseMemory() override;
  uint64_t id() const override { return hello_.session_id(); }
  const std::string& trace_id() const override { return hello_.trace_id(); }
  absl::StatusOr<std::string> Stats(bool memory) override;

  const std::string& transport() const override { return transport_; }
  const std::string& address() const override { return address_; }
  const std::string& device() const override { return hello_.device(); }
  int device_count() const override {
    if (hello_.device() == "cpu") return 0;
    return std::max(1, static_cast<int>(hello_.devices()));
  }
  const std::string& server() const override { return hello_.server(); }
  bool attached() const override { return hello_.attached(); }
  bool closed() const override { return !usable(); }
  bool forked() const override { return ForkGeneration() != fork_generation_; }
  const std::string& token() const override { return hello_.session_token(); }
  void NoteNotInherited(absl::Status reason) override {
    not_inherited_ = std::move(reason);
  }
  uint64_t last_op_sequence() const override {
    return op_sequence_.load(std::memory_order_relaxed);
  }

 private:
  struct PendingRead {
    bool barrier = false;        // no value, only "everything before is done"
    bool spec_only = false;      // no value, only the sizes
    bool profile = false;        // a ProfileChunk's bytes
    bool share = false;          // a token
    bool held_share = false;     // with `share`: Read.hold
    bool names = false;          // a NameReply's bytes
    bool export_memory = false;  // an ExportedMemory's bytes
    bool complete = false;   // with `spec_only`: when the elements are there
    bool progress = false;   // with `barrier`: Read.progress
    bool abandoned = false;  // with `names`: its wait was interrupted
    TensorSpec spec;
    std::unique_ptr<ExportHold> hold;  // a placed read of the tensor itself
    Tensor copy;                       // a placed read of a copy of it
    bool done = false;
    wire::ReadResult result;
  };
  struct KeptEntry {
    uint64_t handle = 0;  // ours; released when the name is dropped
    TensorSpec spec;
    RefPtr<StorageState> storage;
    bool requires_grad = false;
  };

  SessionCore(std::unique_ptr<Connection> connection, std::string address,
              std::shared_ptr<PrivateDaemon> daemon, double timeout_seconds,
              double run_ahead_seconds);

  // Learns the server's op ids.
  absl::Status ReadOpTable();
  absl::Status ReadOpIds();
  // Whether the daemon takes places in streams of random numbers.
  absl::Status KnowsRandomState() const;
  void Release(TensorState& dying) override;

  // ---- session_core.cc
  bool usable() const;
  // Why the session cannot be used. REQUIRES: !usable().
  absl::Status Unusable() const;
  // Ends the session for good; the first reason stays.
  void End(const absl::Status& reason);
  absl::Status CheckOwner(absl::string_view op, const Tensor& tensor) const;
  absl::Status Part(Parting parting);
  // "model" and what is kept below it count as one.
  size_t KeptCount();
  // ---- session_ops.cc
  // Whether the daemon has the device (ops/place_op.h).
  absl::Status CheckDevice(absl::string_view op, int device) const;
  std::shared_ptr<Session> Self();
  Tensor NewTensor(uint64_t handle, TensorSpec spec,
                   RefPtr<StorageState> storage = nullptr);

  // The one place that commands leave through: none is larger than a daemon
  // takes.
  absl::Status Send(EncodedCommand command)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SendParts(EncodedCommand command)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // May a call have so many tensors?
  absl::Status CheckCount(absl::string_view op, size_t tensors) const;
  // Sends one of the rare commands; pending releases travel with it.
  absl::Status SendCommand(const wire::Command& command)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SendReleases() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells the daemon the choice of now, for the op that is sent next.
  absl::Status SendNumerics() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool NumericsChanged() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return g_numerics.load(std::memory_order_relaxed) != numerics_;
  }
  // One more command that the server counts.
  void CountOp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    op_sequence_.store(op_sequence_.load(std::memory_order_relaxed) + 1,
                       std::memory_order_relaxed);
  }
  void Attend();  // the attendant's loop
  absl::StatusOr<Tensor> SendPut(wire::Put put, TensorSpec spec,
                                 int64_t begin_ns);

  // ---- session_kept.cc
  absl::Status CheckKept(absl::Span<const KeepItem> items) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status KeepAtOnce(absl::Span<const KeepItem> items, bool copy)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // As older daemons want it.
  absl::Status KeepOneByOne(absl::Span<const KeepItem> items, bool copy)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A name stands for what `handle` is; null: for nothing any more.
  void NoteKept(const std::string& name, const Tensor& tensor, uint64_t handle,
                bool copy) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- session_grad.cc
  void RecordOutputs(const Attrs& attrs, absl::Span<const Tensor> inputs,
                     absl::Span<const Tensor> outputs, bool inplace)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoots(absl::Span<const Tensor> roots,
                          absl::Span<const Tensor> gradients)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  struct Fresh {
    RefPtr<GraphNode> node;  // whose tensor gets it
    Tensor gradient;
    int target;  // its place in the command
  };
  struct BackwardPlan {
    wire::Command command;
    std::vector<GraphNode*> targets;  // empty: every leaf reached
    std::vector<RefPtr<GraphNode>> roots;
    GraphEdges gradient_edges;  // what the weights of the roots depend on
    // With create_graph and user code: what that code answered with, so that
    // the functions which it applied live as long as the gradients.
    RefPtr<GraphNode> answers;
    Reach reach;
    int64_t begin_ns = 0;  // ProfileBegin
    // Leaves' nodes, and the gradients that they get when all is done.
    std::vector<Fresh> fresh;
    std::vector<Tensor> dropped;  // to be destroyed without the lock

    // For a gradient that is itself differentiable: it depends on what the
    // roots depend on, and on their weights.
    RefPtr<GraphNode> GradientNode() const;
    // The same for what the program gets: also on `answers`, which depend on
    // gradients that the code was given, but not on these.
    RefPtr<GraphNode> ResultNode() const;
  };
  // Plan and send; false: see PrepareUserCode.
  absl::StatusOr<bool> StartBackward(absl::Span<const Tensor> roots,
                                     absl::Span<const Tensor> gradients,
                                     absl::Span<const Tensor> inputs,
                                     const BackwardOptions& options,
                                     bool has_turn, BackwardPlan* plan);
  absl::StatusOr<bool> StartGrad(absl::Span<const Tensor> outputs,
                                 absl::Span<const Tensor> gradients,
                                 absl::Span<const Tensor> inputs,
                                 const BackwardOptions& options,
                                 bool allow_unused, bool has_turn,
                                 BackwardPlan* plan,
                                 std::vector<Tensor>* result);
  // Starts the message; finds what the roots reach. `plan.targets` is given.
  absl::Status PlanBackward(absl::Span<const Tensor> roots,
                            absl::Span<const Tensor> gradients,
                            const BackwardOptions& options, BackwardPlan* plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A tensor for the gradient of `of`, named in the message.
  Tensor NameGradient(const TensorState& of, BackwardPlan* plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status SendBackward(const BackwardPlan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Numbers the backward if it is to be waited for: user code takes part in it.
  // False: the thread must hold user_code_turn_ first; nothing is lost by
  // planning again.
  bool PrepareUserCode(bool has_turn, BackwardPlan* plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A tensor becomes a result of `node`, by being made or written.
  static void SetMade(TensorState* tensor, RefPtr<GraphNode> node);
  static void MoveHistory(TensorState* tensor, RefPtr<GraphNode> node);
  static void SetWritten(TensorState* tensor, RefPtr<GraphNode> node);
  // May a recorded op or function `name` write it?
  absl::Status CheckNotLeaf(absl::string_view name, const Tensor& tensor)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives leaves the gradients that user code was not to see. What it gave
  // them itself, by a backward of its own, is added. `unused`: per target.
  absl::Status ShowGradients(const BackwardPlan& plan,
                             const std::vector<bool>& unused,
                             bool create_graph);
  // Runs user code, drops the graph, and waits where the program looks at
  // memory that backward may touch. Notes the targets that got nothing.
  absl::Status AfterBackward(const BackwardPlan& plan,
                             const BackwardOptions& options,
                             std::vector<bool>* unused);

  // ---- session_user_code.cc
  // A call being answered, and what its function's inputs depend on.
  struct Answering {
    std::shared_ptr<UserCode> function;
    std::vector<RefPtr<GraphNode>> depends_on;
  };
  // Unimplemented: the daemon is too old for user code.
  absl::Status CheckUserCode() const;
  uint64_t Register(const std::shared_ptr<UserCode>& code)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs what backward `plan` asks for until it has ended; its error.
  // Notes the targets that got nothing.
  absl::Status AnswerCalls(const BackwardPlan& plan,
                           const std::function<bool()>& interrupted,
                           std::vector<bool>* unused);
  absl::Status RunCall(const wire::BackwardCall& call,
                       const BackwardPlan& plan);
  // Waits for the server's next word on backward `id`.
  absl::StatusOr<wire::BackwardCall> NextCall(
      uint64_t id, const std::function<bool()>& interrupted, bool* stop);

  // ---- session_profile.cc
  // The comparison of the server's clock with ours.
  struct ClockOffset {
    int64_t offset_ns = 0;  // to add to the server's
    int64_t error_ns = INT64_MAX;
  };
  // Now if a profile runs, else 0.
  int64_t ProfileBegin() const {
    return ABSL_PREDICT_TRUE(!profiling_.load(std::memory_order_relaxed))
               ? 0
               : ProfileNow();
  }
  // Notes a call that began then; 0: no profile ran.
  void Note(ProfiledKind kind, uint64_t sequence, int64_t begin_ns,
            int16_t op = -1, bool inplace = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ABSL_PREDICT_FALSE(begin_ns != 0)) {
      AddSubmission(kind, sequence, begin_ns, op, inplace);
    }
  }
  void AddSubmission(ProfiledKind kind, uint64_t sequence, int64_t begin_ns,
                     int16_t op, bool inplace)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<wire::ProfileChunk> ReadChunk(
      const std::function<bool()>& interrupted, ClockOffset* clock);

  // Unimplemented: the daemon is too old to share tensors.
  absl::Status CheckShares() const;  // session_sharing.cc

  // ---- session_foreign.cc
  // Whether the daemon's devices are plain memory: one for tests.
  bool PlainMemory() const {
    return !hello_.gpus().empty() &&
           hello_.gpus(0).handles() == wire::Gpu::FILE;
  }
  // How the daemon finds the memory, and on which of its devices.
  // Unimplemented: it cannot.
  absl::Status FindForeign(const DeviceArray& array,
                           wire::ForeignMemory* foreign, int* device) const;

  // ---- session_publish.cc
  absl::StatusOr<wire::NameReply> AskNames(
      wire::NameRequest request, const std::function<bool()>& interrupted);
  // Lets go of what an interrupted lookup opened.
  void ReleaseFound(const wire::ReadResult& result);
  // May the op write what it writes?
  // FailedPrecondition if a gradient would need a tensor of inference mode.
  absl::Status CheckSaved(const OpSchema& op, absl::Span<const Tensor> inputs);
  absl::Status CheckWritable(const OpSchema& op,
                             absl::Span<const Tensor> inputs) const;

  // ---- session_known.cc
  // Its only element, if it is known; null otherwise.
  const int64_t* Integer(const TensorState& tensor) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes what the result `made` of an op tells of integers. REQUIRES: the op
  // is select, add, sub or mul and made a scalar of integers.
  static bool TellsIntegers(OpId op) {
    return op == OpId::select || op == OpId::add || op == OpId::sub ||
           op == OpId::mul;
  }
  void FollowIntegers(const Attrs& attrs, absl::Span<const Tensor> inputs,
                      const Tensor& made) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // ---- session_cancel.cc
  // Puts a progress read into the stream; its number.
  uint64_t SendProbe() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts a command; now and then a probe follows it.
  void CountCost(uint64_t cost) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (run_ahead_.Add(cost)) SendProbe();
  }
  // A read is the answer to a probe.
  static bool IsProbe(uint64_t read) { return read >= kFirstProbe; }
  void TakeProbe(const wire::ReadResult& result);
  // What any answer to a barrier may tell.
  void NoteDropped(const wire::ReadResult& result);
  // A wait was ended. By the user for the second time, the daemon still being
  // at what was submitted before the first: cancels. `interrupts`: g_interrupts
  // when the wait began.
  void NoteInterrupt(uint64_t interrupts);

  // ---- session_reads.cc
  // One turn of a waiting thread: takes in events, or lets another do it.
  void WaitForEvents(std::unique_lock<std::mutex>* reads_lock);
  absl::StatusOr<ReadValue> FinishRead(
      uint64_t id, const std::function<bool()>& interrupted);
  absl::StatusOr<uint64_t> SendRead(std::unique_ptr<PendingRead> read,
                                    uint64_t handle, bool place);
  absl::Status SettleAll(absl::Span<const Tensor> tensors);
  // Takes in events until one comes or the deadline passes.
  absl::Status Pump(SteadyTime deadline);
  void HandleEvent(wire::Event event);
  absl::Status FillValue(PendingRead& read, ReadValue* value);

  const std::unique_ptr<Connection> connection_;
  DeviceMappings mappings_;
  const std::shared_ptr<PrivateDaemon> daemon_;  // or null
  const wire::HelloReply hello_;
  const std::string address_;
  const std::string transport_;
  const bool local_;  // shares memory with the daemon
  const double timeout_seconds_;
  const uint32_t fork_generation_;
  const bool parts_;  // the daemon has kFeatureParts
  const bool order_;  // ... kFeatureOrder
  // In a child, which looks at nothing that another thread of the parent may
  // have locked. Written by one thread at a time.
  absl::Status not_inherited_;
  std::vector<uint32_t> op_ids_;     // by OpId; kNoSuchOp where it is missing
  std::vector<bool> saves_nothing_;  // by OpId: HelloReply.saves_nothing
  // By OpId, from HelloReply.saves; empty: the daemon saves itself.
  std::vector<wire::OpSaves> saves_;
  static constexpr uint64_t kFirstProbe = uint64_t{1} << 63;
  const bool cancels_;  // the daemon has kFeatureCancel
  const CostKind* const cost_kinds_;
  RunAhead run_ahead_;
  // Of recorded ops since the last backward: what the next one is estimated by.
  uint64_t recorded_cost_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t cancelled_ ABSL_GUARDED_BY(mutex_) = 0;  // ReadResult.cancelled
  // Behind what was submitted before the latest Ctrl-C; 0: there was none.
  std::atomic<uint64_t> interrupt_probe_{0};
  // Gradients that were not made, as a read has told: ReadResult.lost.
  absl::flat_hash_set<uint64_t> lost_ ABSL_GUARDED_BY(mutex_);

  std::atomic<bool> ended_{false};
  std::atomic<uint64_t> op_sequence_{0};
  std::atomic<int64_t> exports_{0};     // ExportHolds alive
  std::atomic<bool> profiling_{false};  // changed under mutex_

  std::mutex mutex_;  // a third of absl::Mutex's price when it is free
  BatchWriter writer_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_handle_ ABSL_GUARDED_BY(mutex_);
  // What the daemon was told last.
  NumericsChoice numerics_ ABSL_GUARDED_BY(mutex_) = kDefaultNumerics;
  std::vector<uint64_t> releases_ ABSL_GUARDED_BY(mutex_);
  bool attending_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, KeptEntry> kept_ ABSL_GUARDED_BY(mutex_);
  Profile profile_ ABSL_GUARDED_BY(mutex_);  // so far
  uint64_t max_submissions_ ABSL_GUARDED_BY(mutex_) = 0;
  ClockOffset clock_ ABSL_GUARDED_BY(mutex_);

  // One backward with user code at a time, and those that its code starts;
  // taken before mutex_.
  std::recursive_mutex user_code_turn_;
  uint64_t next_user_code_ ABSL_GUARDED_BY(mutex_) = 1;
  size_t user_code_sweep_ ABSL_GUARDED_BY(mutex_) = 64;
  absl::flat_hash_map<uint64_t, std::weak_ptr<UserCode>> user_code_
      ABSL_GUARDED_BY(mutex_);
  std::vector<const Answering*> answering_ ABSL_GUARDED_BY(mutex_);

  mutable std::mutex end_mutex_;
  absl::Status end_reason_ ABSL_GUARDED_BY(end_mutex_);

  std::mutex reads_mutex_;
  std::condition_variable read_done_;
  bool pumping_ ABSL_GUARDED_BY(reads_mutex_) = false;
  uint64_t next_read_ ABSL_GUARDED_BY(reads_mutex_) = 1;
  std::deque<wire::BackwardCall> calls_ ABSL_GUARDED_BY(reads_mutex_);
  absl::flat_hash_map<uint64_t, std::unique_ptr<PendingRead>> reads_
      ABSL_GUARDED_BY(reads_mutex_);

  std::atomic<bool> stopping_{false};
  std::unique_ptr<std::thread> attendant_;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_SESSION_CORE_H_
