// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a kernel is: a function over tensor views. Kernels never allocate
// their outputs (the executor does, from the inferred spec) and never see
// handles, sessions or the tape. Inputs have passed inference; element values
// (indices) have not been checked by anybody: a kernel checks those itself.
// Thread-safety: kernels are reentrant; one call may use several threads.
#ifndef HOLDFAST_KERNELS_KERNEL_H_
#define HOLDFAST_KERNELS_KERNEL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ops/attrs.h"
#include "ops/tensor_spec.h"

namespace holdfast {

// A tensor's elements in device memory. `data` points at element 0 of the view
// (the spec's offset is already applied). data == nullptr && spec == nullptr:
// absent optional tensor. Does not own anything.
struct TensorView {
  void* data = nullptr;
  const TensorSpec* spec = nullptr;

  bool present() const { return spec != nullptr; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// Position in a Philox stream: a kernel that draws n numbers uses counters
// offset .. offset + n - 1 (element i uses counter offset + i), so results do
// not depend on the thread count.
struct PhiloxState {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

// What the thread that runs kernels does for others meanwhile.
class Attendant {
 public:
  virtual ~Attendant() = default;
  // Any thread; cheap.
  bool waits() const { return waits_.load(std::memory_order_relaxed); }
  // Does what waits, if this is the thread for it. Runs no kernel.
  virtual void Attend() = 0;

 protected:
  std::atomic<bool> waits_{false};
};

// How the op that a session runs is told to stop. Ops have the numbers of the
// commands that they belong to, so a number may come again. A request says
// which it means: one that comes late stops no other op.
// Thread-safety: any thread, where nothing else is said. Only requests lock.
class StopSignal {
 public:
  // What runs has no number: only StopThrough(kNone) stops it, which stops all
  // there is and will be.
  static constexpr uint64_t kNone = UINT64_MAX;

  // ---- the thread that runs the ops

  void Begin(uint64_t op) { running_.store(op, std::memory_order_relaxed); }
  // From now on looks give it its turn; null: none.
  void set_attendant(Attendant* attendant) {
    attendant_.store(attendant, std::memory_order_relaxed);
  }
  // Another client counts its ops from 1.
  void Reset() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (through_.load() != kNone) through_.store(0);
    one_.store(0);
  }

  // ---- requests; ops are numbered from 1

  uint64_t running() const { return running_.load(std::memory_order_relaxed); }
  // Stops that op, if it runs still.
  void StopOne(uint64_t op, absl::Status why) {
    std::lock_guard<std::mutex> lock(mutex_);
    // An op that is to stop already stays so: some of it has been left out.
    if (op == kNone || one_.load() == running()) return;
    why_one_ = std::move(why);
    one_.store(op);
    asked_.store(true);
  }
  // Stops that op and those below, also those that are yet to begin.
  void StopThrough(uint64_t op, absl::Status why) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (op <= through_.load()) return;
    why_through_ = std::move(why);
    through_.store(op);
    asked_.store(true);
  }

  // ---- kernels

  // Whether the op that runs is to stop. One load while nothing is asked.
  bool stopped() const {
    return ABSL_PREDICT_FALSE(asked_.load(std::memory_order_relaxed)) &&
           (Passed() || running() == one_.load());
  }
  // REQUIRES: stopped().
  absl::Status why() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return Passed() ? why_through_ : why_one_;
  }
  // The same as stopped(), and inside an op the attendant has its turn.
  bool Look() {
    Attendant* const attendant = attendant_.load(std::memory_order_relaxed);
    if (attendant != nullptr && ABSL_PREDICT_FALSE(attendant->waits()) &&
        running() != kNone) {
      attendant->Attend();
    }
    return stopped();
  }

 private:
  bool Passed() const { return running() <= through_.load(); }

  std::atomic<uint64_t> running_{kNone};
  std::atomic<uint64_t> through_{0}, one_{0};  // written under mutex_
  std::atomic<bool> asked_{false};             // some request was made
  std::atomic<Attendant*> attendant_{nullptr};
  mutable std::mutex mutex_;  // guards what follows
  absl::Status why_through_, why_one_;
};

class KernelContext {
 public:
  virtual ~KernelContext() = default;
  // Threads a kernel may use, itself included; >= 1.
  int num_threads = 1;
  PhiloxState philox;
  // For an op whose sizes depend on data: what its SizesFn found on the way and
  // its kernel goes on with. Scratch memory, valid until the kernel returns.
  void* carried = nullptr;
  // What may stop the kernel; null: nothing does.
  StopSignal* stop = nullptr;
  // For loops that can be long, about once a millisecond: whether to leave
  // off. What was not computed may then be anything, for nobody sees it. Any
  // thread of the kernel.
  bool Stopped() const { return stop != nullptr && stop->Look(); }
  // Scratch memory on the device, 64-byte aligned, valid until the kernel
  // returns; nullptr when memory is short (return ResourceExhausted then).
  virtual void* Scratch(size_t bytes) = 0;
};

// `inputs` in slot order (absent ones not present()); a number passed for an
// operand arrives as a rank-0 view of the computation type. `outputs` are
// allocated, and contiguous unless the call is in-place: then outputs[0] is
// inputs[0]'s own view (any strides) and the kernel must cope with the alias.
// Other inputs never partially overlap an output. Ops flagged kMutates write
// their `!` inputs and have no outputs.
using KernelFn = absl::Status (*)(KernelContext& context, const Attrs& attrs,
                                  absl::Span<const TensorView> inputs,
                                  absl::Span<const TensorView> outputs);

// The companion of the kernel of an op of unknown sizes, which runs before it
// on the same inputs: fills in the sizes that inference left unknown, in the
// order in which they stand in the outputs' shapes. The elements may change
// before the kernel runs (a client may share the memory): the kernel must stay
// inside outputs of these sizes all the same. A kDataShape op's kernel writes
// all of them. A kDeviceSized op's companion looks at no element: it may run
// while launches before it are withheld (server/replay).
using SizesFn = absl::Status (*)(KernelContext& context, const Attrs& attrs,
                                 absl::Span<const TensorView> inputs,
                                 absl::Span<int64_t> sizes);

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_KERNEL_H_
