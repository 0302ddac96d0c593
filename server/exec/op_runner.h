// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// OpRunner: runs one op on tensors: infer, allocate outputs, record on the
// tape, launch. The only place where kernels are launched: the client's ops
// and the gradient rules' ops both come through here.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_SERVER_EXEC_OP_RUNNER_H_
#define HOLDFAST_SERVER_EXEC_OP_RUNNER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "autograd/op_sink.h"
#include "ops/attrs.h"
#include "ops/infer.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "server/exec/session_devices.h"
#include "server/exec/tensor.h"
#include "server/memory/caching_allocator.h"

namespace holdfast {

// One op in this many is timed: a clock read per op would cost as much as a
// tiny op itself.
inline constexpr int kTimedEvery = 64;
// Bucket i counts durations up to 256 ns * 4^i, the last all longer ones
// (from 17 s).
inline constexpr int kLatencyBuckets = 15;
constexpr uint64_t LatencyBound(int bucket) {
  return uint64_t{256} << 2 * bucket;
}

// Calls per op, for stats. Written by the worker, read by anyone.
struct OpCounters {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> failures{0};
  // Estimate of the time of all calls: kTimedEvery times that of the timed
  // ones.
  std::atomic<uint64_t> nanoseconds{0};
  std::array<std::atomic<uint64_t>, kLatencyBuckets> latency{};  // timed calls
};
std::array<OpCounters, kNumOps>& AllOpCounters();
inline OpCounters& CountersOf(OpId op) {
  return AllOpCounters()[static_cast<int>(op)];
}

// The op whose kernel the worker runs just now; -1: none. Any thread.
int RunningKernel();

class ProfileBuffer;

class OpRunner final : public OpSink {
 public:
  // `devices` must outlive the runner. An op runs where its tensors are
  // (ops/place_op.h), on the session's stream there.
  explicit OpRunner(SessionDevices* devices) : devices_(devices) {}
  // From now on there is memory that some client can write.
  void set_guard(CachingAllocator* guard) { devices_->home().guard = guard; }

  absl::StatusOr<Values> Emit(const Attrs& attrs,
                              absl::Span<const Value> inputs, bool record,
                              bool inplace) override;
  absl::StatusOr<Values> EmitOver(const Attrs& attrs,
                                  absl::Span<const Value> inputs) override;
  Value Alias(const Value& value) override;

  // Like Emit, filling `outputs` instead of allocating a result. The result of
  // a recorded in-place op is another variable over inputs[0]'s memory, with
  // the new history.
  absl::Status Run(const Attrs& attrs, absl::Span<const Value> inputs,
                   bool record, bool inplace, Values* outputs);

  // An uninitialised contiguous tensor on the spec's device.
  absl::StatusOr<RefPtr<Tensor>> NewTensor(TensorSpec spec);

  // A contiguous copy on the same device, in a block for work on stream
  // `owner`.
  absl::StatusOr<RefPtr<Tensor>> Copy(const Tensor& tensor,
                                      CachingAllocator* allocator,
                                      StreamId owner);
  // The tensor itself if it lies on the first device, else a contiguous copy
  // there.
  absl::StatusOr<Value> AtHome(const Value& tensor);
  // Before the session uses the tensor on an asynchronous device: waits for
  // other sessions' work on memory that they share and may write.
  absl::Status Join(const Value& tensor);
  // Waits for the session's work on the tensor's device.
  absl::Status Synchronize(const Value& tensor);

  absl::StatusOr<bool> HasNaN(const Value& value) override;

  // Whether results of elementwise ops lie as their operands do (KeepOrder in
  // ops/infer_rule.h): what the session's client infers.
  void set_keep_order(bool keep) { keep_order_ = keep; }
  // What may stop its ops; must outlive the runner. Null: nothing.
  void set_stop(const StopSignal* stop) { stop_ = stop; }

  // How long an op may take by estimate, where it is expanded tensors' sizes
  // that make it long; 0: no limit. Any thread.
  void set_most_seconds(double seconds) {
    most_seconds_.store(seconds > 0 ? seconds
                                    : std::numeric_limits<double>::infinity());
  }

  // Notes every op from now on; null: none.
  void set_profile(ProfileBuffer* profile) { profile_ = profile; }

  // What Node::op_sequence of the ops recorded from now on says.
  void set_client_op(uint64_t sequence) { client_op_ = sequence; }

  // The next op that the client asked for, if it is recorded, saves nothing:
  // the client's `code` does (Node::Pack). 0: it saves.
  void set_pack(uint64_t code) { pack_ = code; }

  // The session's stream, from which the next random op draws.
  const PhiloxState& random() const { return philox_; }
  void SetRandom(PhiloxState random) { philox_ = random; }
  // Any thread.
  uint64_t ops_run() const { return ops_run_.load(std::memory_order_relaxed); }

 private:
  static absl::StatusOr<RefPtr<Tensor>> NewTensorIn(TensorSpec spec,
                                                    CachingAllocator* allocator,
                                                    StreamId owner);
  // Before an op that may write its inputs: copies to the host that read them
  // on another stream go first.
  absl::Status AwaitReaders(const SessionDevice& place,
                            absl::Span<const Value> inputs, bool writes) const;
  static void JoinShared(const SessionDevice& place, Storage* storage);
  // A copy on another device; both streams wait for each other.
  absl::StatusOr<RefPtr<Tensor>> Move(const Tensor& tensor, int device);
  // RunOp, of which no exception comes: what one says is the op's error.
  absl::Status RunCaught(const Attrs& attrs, absl::Span<const Value> inputs,
                         bool record, bool inplace, Values* outputs);
  absl::Status RunOp(const Attrs& attrs, absl::Span<const Value> inputs,
                     bool record, bool inplace, Values* outputs);
  absl::Status RunView(const OpSchema& schema, const OutputSpecs& specs,
                       absl::Span<const Value> inputs, Values* outputs);
  // `ordered`: some result is not in row-major order.
  absl::Status RunKernel(const Attrs& attrs, absl::Span<const Value> inputs,
                         bool inplace, OutputSpecs specs, bool ordered,
                         Values* outputs);
  // Turns the views of an elementwise op so that those of its outputs, which
  // lie alike, are contiguous. `specs` is what they then point to.
  using OrderedSpecs = absl::InlinedVector<TensorSpec, 4>;
  static void ShowInOrder(absl::Span<TensorView> inputs,
                          absl::Span<TensorView> outputs, OrderedSpecs* specs);
  // Where the kernel runs.
  absl::StatusOr<SessionDevice*> FindPlace(const Attrs& attrs,
                                           absl::Span<const Value> inputs,
                                           bool inplace, int* device);
  absl::Status CheckInplace(const Attrs& attrs, absl::Span<const Value> inputs,
                            bool record);
  // What a kernel sees of its inputs, and what keeps that alive.
  struct KernelInputs;
  absl::Status Prepare(const SessionDevice& place, int device,
                       const Attrs& attrs, absl::Span<const Value> inputs,
                       bool inplace, KernelInputs* prepared);
  // Fills in the sizes of `specs` that only the data tells.
  absl::Status CompleteSpecs(const SessionDevice& place, const Attrs& attrs,
                             const KernelInputs& inputs, OutputSpecs* specs);
  // Keeps what is known of the integers that a launch has written or made;
  // `done` false: it failed.
  static void NoteIntegers(const Attrs& attrs, absl::Span<const Value> inputs,
                           bool inplace, bool done, const Values& outputs);
  // Why an op was not run to its end, or not at all.
  absl::Status Stopped(const OpSchema& schema, bool inplace, bool begun) const;
  // Draws the next op to time.
  void NoteDuration(int64_t nanoseconds, OpCounters* counters);

  SessionDevices* const devices_;
  const StopSignal* stop_ = nullptr;
  std::atomic<double> most_seconds_{600};
  PhiloxState philox_;
  uint64_t client_op_ = 0;
  uint64_t pack_ = 0;
  std::atomic<uint64_t> ops_run_{0};  // one writer
  uint64_t next_timed_ = kTimedEvery;
  uint64_t timing_random_ = 1;
  ProfileBuffer* profile_ = nullptr;
  bool over_first_ = false;  // see EmitOver
  bool keep_order_ = false;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_OP_RUNNER_H_
