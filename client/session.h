// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Session: one client's ordered stream of ops to a daemon. Ops return at once
// with named, shaped tensors; only reads wait. Errors of shape and type are
// returned at the call; errors of execution are stored under the promised
// handles and returned by the next read that needs them.
// Thread-safety: all methods from any thread. A process that forks must not
// use the parent's session: methods then return FailedPrecondition.
#ifndef HOLDFAST_CLIENT_SESSION_H_
#define HOLDFAST_CLIENT_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/block_marks.h"
#include "client/credentials.h"
#include "client/device_array.h"
#include "client/known_integer.h"
#include "client/profile.h"
#include "client/published.h"
#include "client/random_stream.h"
#include "client/tensor.h"
#include "client/user_code.h"
#include "ops/attrs.h"
#include "ops/complex.h"
#include "ops/half.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "ops/place_op.h"

namespace holdfast::client {

struct ConnectOptions {
  // "host:port" (gRPC), "unix:/path" (shared memory), or "": HOLDFAST_ADDRESS,
  // else a running local daemon, else a private daemon of this process.
  std::string address;
  std::string session_name;  // names the session, or with `attach` finds it
  bool attach = false;       // it must be there
  // Attach if it is there and no program uses it, else open a new one.
  bool attach_if_away = false;
  double grace_seconds = 60;    // see HelloRequest
  bool default_grace = false;   // nobody chose it: see HelloRequest
  double timeout_seconds = 10;  // to connect, and for answers
  // How long to try again after a cut; none: for the grace period.
  std::optional<double> reconnect_seconds;
  // Of the session whose program started this worker (HelloRequest).
  std::string parent_token;
  Credentials credentials;  // over gRPC; see FindCredentials
  // How many seconds of device time a program may be ahead of the daemon before
  // an op waits; infinite: no bound. None: HOLDFAST_RUN_AHEAD_SECONDS, else 2.
  std::optional<double> run_ahead_seconds;
  std::string client = "holdfast-cpp";
  // The daemon's binary, for a private daemon; tried after HOLDFAST_DAEMON and
  // before the folders next to this library and PATH.
  std::string daemon_path;
};

struct BackwardOptions {
  bool retain_graph = false;    // keep the graph for another backward
  bool create_graph = false;    // record the gradients' computation
  bool detect_anomaly = false;  // NaN in a gradient is an error
  // Polled while user code is waited for; may be null. True ends the backward
  // with Cancelled.
  std::function<bool()> interrupted;
};

// Elements of one read. `data` is row-major; or, for a placed read, points at
// the storage's first byte in shared memory and spec.offset/strides apply.
// `owner` keeps the memory valid; while a placed read's owner lives, ops that
// touch the storage are waited for.
struct ReadValue {
  TensorSpec spec;
  const void* data = nullptr;
  std::shared_ptr<void> owner;
  bool placed = false;  // `data` is the tensor's own memory, writable
};

// Bit i: input (output) i.
struct SavedMasks {
  bool any() const { return (inputs | outputs) != 0; }
  // Bit 31 speaks for all later inputs, too.
  bool input(size_t i) const { return (inputs >> (i < 31 ? i : 31) & 1u) != 0; }
  bool output(size_t i) const { return i < 32 && (outputs >> i & 1u) != 0; }

  uint32_t inputs = 0;
  uint32_t outputs = 0;
};

// The failure of one op, as the server tells it, for the language layer.
// Attached to statuses returned by Wait (OpFailureOf).
struct OpFailure {
  std::string op;
  uint64_t op_sequence = 0;
  // Of a backward: the number of the op whose gradient failed; 0: unknown.
  uint64_t forward_op_sequence = 0;
  // The session's, as in the daemon's log; "" from an older daemon.
  std::string trace_id;
};

// What is closed from now on is closed because the process is about to end:
// arrays that look at a daemon's memory are not copied first. Any thread.
void ProcessEnds();

class Session : public std::enable_shared_from_this<Session> {
 public:
  static absl::StatusOr<std::shared_ptr<Session>> Connect(
      const ConnectOptions& options);
  virtual ~Session() = default;

  // ---- ops

  // Infers, names the outputs and appends the op; never waits except for
  // backpressure. `inputs` in slot order, null where absent; `outputs` receives
  // one tensor per output (inputs[0] itself for in-place). `record` is false
  // under no_grad. A random op draws from `random`, null: from the session's
  // own stream. With `unpack` (null, or what lives until this returns) the
  // server keeps nothing for the op's gradient: a backward that comes to it
  // runs *unpack, whose results are what Saved told of, inputs first, null for
  // the others.
  virtual absl::Status Apply(const Attrs& attrs,
                             absl::Span<const Tensor> inputs, bool inplace,
                             bool record, absl::Span<Tensor> outputs,
                             RandomStream* random,
                             const std::shared_ptr<UserCode>* unpack) = 0;
  absl::Status Apply(const Attrs& attrs, absl::Span<const Tensor> inputs,
                     bool inplace, bool record, absl::Span<Tensor> outputs) {
    return Apply(attrs, inputs, inplace, record, outputs, nullptr, nullptr);
  }
  // What the gradient of this call would use of its inputs and outputs; nothing
  // if no input requires one. Unimplemented by daemons that cannot do without.
  virtual absl::StatusOr<SavedMasks> Saved(const OpSchema& schema,
                                           absl::Span<const Tensor> inputs) = 0;

  // A tensor from row-major bytes on `device`: inline when small, else through
  // the arena or an upload; `data` may be reused when it returns. `marks`:
  // null, or gets those of the bytes that the tensor has.
  virtual absl::StatusOr<Tensor> Put(DType dtype,
                                     absl::Span<const int64_t> shape,
                                     const void* data, int device,
                                     BlockMarks* marks) = 0;
  absl::StatusOr<Tensor> Put(DType dtype, absl::Span<const int64_t> shape,
                             const void* data) {
    return Put(dtype, shape, data, 0, nullptr);
  }

  // A tensor whose memory is shared with the caller (shared memory only): the
  // returned value is writable and aliases the tensor. Unimplemented over gRPC.
  virtual absl::StatusOr<std::pair<Tensor, ReadValue>> PutShared(
      DType dtype, absl::Span<const int64_t> shape) = 0;

  // A copy, outside the graph, of a tensor of another session on the same
  // daemon, whose client this process was forked from. Waits until the parent's
  // ops before the fork are done.
  virtual absl::StatusOr<Tensor> Inherit(const Tensor& tensor) = 0;

  // ---- gradients

  // Marks a leaf, or clears the mark.
  virtual absl::Status SetRequiresGrad(const Tensor& tensor, bool value) = 0;
  // Tensor.retain_grad: a result that keeps its gradient. No-op on leaves.
  virtual absl::Status RetainGrad(const Tensor& tensor) = 0;
  // grad_fn shows the op that has just made `result` as a function `name` (of
  // static storage) of `inputs`, whose last op it is. Never blocks; nothing if
  // `result` is no part of the graph.
  virtual void ShowAs(const Tensor& result, const char* name,
                      absl::Span<const Tensor> inputs) = 0;
  // Tensor.grad; null for None. The gradient must fit the tensor.
  virtual Tensor GetGrad(const Tensor& tensor) = 0;
  virtual absl::Status SetGrad(const Tensor& tensor, Tensor gradient) = 0;

  // Tensor.backward: accumulates into `.grad` of the leaves reached (limited
  // to `inputs` unless empty). Null gradients: ones.
  virtual absl::Status Backward(absl::Span<const Tensor> roots,
                                absl::Span<const Tensor> gradients,
                                absl::Span<const Tensor> inputs,
                                const BackwardOptions& options) = 0;
  // autograd.grad: one gradient per input; null for unused ones: where not
  // allowed only those that user code left without (the caller judges).
  virtual absl::StatusOr<std::vector<Tensor>> Grad(
      absl::Span<const Tensor> outputs, absl::Span<const Tensor> gradients,
      absl::Span<const Tensor> inputs, const BackwardOptions& options,
      bool allow_unused) = 0;

  // Whether the outputs depend on a leaf (or a tensor that retains its
  // gradient) that is none of `inputs`. May say yes where the client cannot
  // know.
  virtual bool DependsOnOthers(absl::Span<const Tensor> outputs,
                               absl::Span<const Tensor> inputs) = 0;

  // ---- the program's own code in the graph (user_code.h). A backward that
  // meets some runs it on the calling thread, and returns when it is done.

  // Makes `outputs` results of `function` of `inputs`. Null inputs are no
  // tensors, null outputs take no gradient. written[i]: output i is an input
  // that the function wrote in place. The leaves behind `behind` count as
  // inputs too, so that a backward towards one of them runs the function;
  // returns how many there are, each of which takes a result.
  virtual absl::StatusOr<int64_t> RecordFunction(
      std::shared_ptr<UserCode> function, absl::Span<const Tensor> inputs,
      absl::Span<const Tensor> outputs, const std::vector<bool>& written,
      absl::Span<const Tensor> behind) = 0;
  // Backward shows `hook` the tensor's gradient. Returns its number.
  virtual absl::StatusOr<uint64_t> RegisterHook(
      const Tensor& tensor, std::shared_ptr<UserCode> hook) = 0;
  virtual void RemoveHook(const Tensor& tensor, uint64_t number) = 0;
  // Inside the call of a function that is `own`: `tensor`, which has no
  // history, becomes its output again.
  virtual absl::Status RestoreOutput(
      const Tensor& tensor, const std::function<bool(const UserCode&)>& own,
      uint32_t output) = 0;

  // ---- reads: the only waits

  // Starts a read; the value arrives later. `place`: see wire Read.place; on
  // gRPC it is ignored.
  virtual absl::StatusOr<uint64_t> StartRead(const Tensor& tensor,
                                             bool place) = 0;
  // Waits for it (once per id). `interrupted` is polled every ~50 ms and may
  // be null; true ends the wait with Cancelled, the session stays usable.
  virtual absl::StatusOr<ReadValue> WaitRead(
      uint64_t id, const std::function<bool()>& interrupted) = 0;
  // Where the tensor's first element lies in this process: where its memory is
  // mapped, else 0. It stays there until the storage dies, and so long ops that
  // touch the storage are waited for. Waits as WaitRead.
  virtual absl::StatusOr<uintptr_t> Address(
      const Tensor& tensor, const std::function<bool()>& interrupted) = 0;
  // True when WaitRead would not wait.
  virtual bool ReadReady(uint64_t id) = 0;
  // The value of an integer tensor without dimensions, if no read is needed for
  // it, or what to read to know it next time. Never waits.
  virtual KnownInteger FindInteger(const Tensor& tensor) = 0;
  // Takes in what KnownInteger::to_read was found to hold, in its order.
  virtual void LearnIntegers(const Tensor& tensor, uint32_t writes,
                             std::vector<int64_t> values) = 0;
  // Waits until the sizes of a pending tensor are known; a failure of the op
  // that makes it is returned. At once for every other tensor. Methods above
  // that look at sizes do it themselves, without the chance to interrupt.
  virtual absl::Status Settle(const Tensor& tensor,
                              const std::function<bool()>& interrupted) = 0;
  // Calls back everything submitted so far that the daemon has not done. It is
  // dropped in its order: results fail with Cancelled ("cancelled at" `where`),
  // what would have been written in place stays as it is. Ops submitted after
  // this call are not touched. Waits until that is done, over a cut, too;
  // returns how many commands were dropped. Unimplemented: an older daemon.
  virtual absl::StatusOr<uint64_t> Cancel(
      const std::string& where, const std::function<bool()>& interrupted) = 0;
  // More than ConnectOptions.run_ahead_seconds are submitted and not done. The
  // next op would wait.
  bool too_far_ahead() const {
    return too_far_ahead_.load(std::memory_order_relaxed);
  }
  // Waits until that is not so. Any thread.
  virtual absl::Status AwaitRoom(const std::function<bool()>& interrupted) = 0;
  // Everything sent so far is done.
  virtual absl::Status Synchronize(
      const std::function<bool()>& interrupted) = 0;

  // ---- sharing with other sessions of the daemon

  // A token by which another session opens the tensor's storage; waits until
  // what was sent before is done. The token is good while some session has the
  // storage; with `hold` also until OpenShared ends the hold or this session
  // ends, whatever tensors die before.
  virtual absl::StatusOr<std::string> Share(
      const Tensor& tensor, bool hold,
      const std::function<bool()>& interrupted) = 0;
  // A leaf over the storage with that token. An unknown token or a spec that
  // does not fit is an error of the first read, as for ops.
  virtual absl::StatusOr<Tensor> OpenShared(const std::string& token,
                                            TensorSpec spec,
                                            bool release_hold) = 0;

  // ---- memory of GPUs, which other libraries of this process use as well

  // The number by which this process knows the GPU of tensors of `device`
  // (ops/place_op.h; not "cpu").
  virtual absl::StatusOr<int> OrdinalOf(int device) = 0;
  // The number of the GPU that an address of this process is of.
  virtual absl::StatusOr<int> OrdinalOfMemory(const void* address) = 0;
  // The tensor's own memory in this process: what either side writes the other
  // sees. Waits until all that was sent before is done. Later ops run on the
  // daemon's stream: Synchronize before looking at what they write. Memory of
  // other sessions and tensors of remote daemons are InvalidArgument. It stays
  // until the session is closed.
  virtual absl::StatusOr<DeviceArray> ExportMemory(
      const Tensor& tensor, const std::function<bool()>& interrupted) = 0;
  // A contiguous tensor with the elements of `array`, on that GPU; waits until
  // they are copied. Unimplemented: the daemon cannot open that memory, see
  // ReadMemory.
  virtual absl::StatusOr<Tensor> CopyMemory(
      const DeviceArray& array, const std::function<bool()>& interrupted) = 0;
  // Copies `bytes` from array.data to the host.
  virtual absl::Status ReadMemory(const DeviceArray& array, size_t bytes,
                                  void* host) = 0;
  // Waits for a stream of this process (CUDA's number of it), null: for all
  // that it has given the GPU.
  virtual absl::Status AwaitProducer(int ordinal,
                                     std::optional<uintptr_t> stream) = 0;

  // ---- named tensors of the daemon. All of these wait for the answer.

  // Makes the next version of a name from tensors by key: copies, which nobody
  // can write, unless the options say otherwise.
  virtual absl::StatusOr<Published> Publish(
      const std::string& name,
      absl::Span<const std::pair<std::string, Tensor>> tensors,
      const PublishOptions& options,
      const std::function<bool()>& interrupted) = 0;
  // A version's tensors, leaves; 0: the latest. `owner` "": this user's.
  virtual absl::StatusOr<Found> Lookup(
      const std::string& name, uint64_t version, const std::string& owner,
      const std::function<bool()>& interrupted) = 0;
  // The name goes; what readers hold stays.
  virtual absl::Status Unpublish(const std::string& name,
                                 const std::function<bool()>& interrupted) = 0;
  // The latest versions of all names that this user may look up.
  virtual absl::StatusOr<std::vector<Published>> ListPublished(
      const std::function<bool()>& interrupted) = 0;

  // What an op's node keeps for backward; waits for it. `root` is a tensor
  // whose graph has `node`.
  virtual absl::StatusOr<SavedTensors> SavedOf(
      const Tensor& root, const GraphNode& node,
      const std::function<bool()>& interrupted) = 0;

  // ---- profiling

  // Notes from now on what is submitted and executed. Over gRPC it waits for
  // what was sent before, to compare clocks.
  virtual absl::Status StartProfile(
      const ProfileOptions& options,
      const std::function<bool()>& interrupted) = 0;
  // Ends it, waits until what was submitted is done, and tells.
  virtual absl::StatusOr<Profile> StopProfile(
      const std::function<bool()>& interrupted) = 0;

  // ---- session

  // Moves the session's stream. Where it is, the op random_state tells.
  virtual absl::Status SetRandom(RandomPlace place) = 0;
  absl::Status SetSeed(uint64_t seed) { return SetRandom({seed, 0}); }
  // Keeps tensors under names for a later client, all in one change; drops the
  // names of null ones. With `copy` it keeps copies, made after what was sent.
  using KeepItem = std::pair<std::string, Tensor>;
  virtual absl::Status Keep(absl::Span<const KeepItem> items, bool copy) = 0;
  absl::Status Keep(const std::string& name, const Tensor& tensor) {
    const KeepItem item(name, tensor);
    return Keep({&item, 1}, /*copy=*/false);
  }
  virtual std::vector<std::string> KeptNames() = 0;
  // Tensors kept by this or an earlier client of the session.
  virtual std::vector<std::pair<std::string, Tensor>> Kept() = 0;
  // Leaves; `keep`: the session stays (under its name) for a later attach.
  virtual absl::Status Close(bool keep) = 0;
  // What the end of a program does: a session that has a name and keeps
  // something is left on the daemon for its grace period, any other is closed.
  struct Left {
    std::string name;
    size_t kept = 0;  // names, "model" and all below it being one
    double grace_seconds = 0;
  };
  virtual std::optional<Left> CloseOrLeave() = 0;
  // Gives a session without a name one, as if it had been opened under it.
  // AlreadyExists: another session has that; Unimplemented: an older daemon.
  virtual absl::Status SetName(const std::string& name,
                               double grace_seconds) = 0;
  virtual std::string name() const = 0;  // "" without one
  // Of this process alone (client/private_daemon.h).
  virtual bool on_private_daemon() const = 0;
  // How long it outlives its connection, as the daemon has it.
  virtual double grace_seconds() const = 0;
  // The session's peak of memory in use starts again, after what was sent.
  virtual absl::Status ResetPeakMemory() = 0;
  // Memory kept for reuse goes back to the device, after what was sent.
  virtual absl::Status ReleaseMemory() = 0;
  // Its number in Stats.
  virtual uint64_t id() const = 0;
  // Names the session in errors and in the daemon's log.
  virtual const std::string& trace_id() const = 0;
  // Serialized wire::StatsReply; `memory`: with this session's blocks.
  virtual absl::StatusOr<std::string> Stats(bool memory) = 0;

  virtual const std::string& transport() const = 0;  // "shm" or "grpc"
  virtual const std::string& address() const = 0;
  virtual const std::string& device() const = 0;
  // GPUs of the daemon. An op runs where its tensors are (ops/place_op.h).
  virtual int device_count() const = 0;           // "cpu"
  virtual const std::string& server() const = 0;  // "holdfastd 0.1.0"
  // To a session that an earlier program left.
  virtual bool attached() const = 0;
  virtual bool closed() const = 0;
  // This process was forked from the one that opened the session.
  virtual bool forked() const = 0;
  // What gives its holder a copy of any tensor of the session.
  virtual const std::string& token() const = 0;
  // REQUIRES: forked(). Why a tensor of it could not be inherited: what its
  // methods say from now on.
  virtual void NoteNotInherited(absl::Status reason) = 0;
  // Number of the last op appended; ties errors to the caller's source lines.
  virtual uint64_t last_op_sequence() const = 0;

 protected:
  std::atomic<bool> too_far_ahead_{false};

 private:
  friend class TensorState;
  // Called by ~TensorState.
  virtual void Release(TensorState& dying) = 0;
};

// The failure behind a status from a read, or nullptr-like empty op.
OpFailure OpFailureOf(const absl::Status& status);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_SESSION_H_
