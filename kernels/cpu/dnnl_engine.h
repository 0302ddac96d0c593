// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// oneDNN as the kernels use it: its engine, a stream per thread, and DnnlOp, a
// primitive prepared for repeated calls: reorders into the layouts it prefers,
// memory objects, scratch sizes. Preparing costs a hundred times a small call,
// so that each thread keeps the DnnlOps it used last.
// Thread-safety: a DnnlOp belongs to the thread that made it. No function here
// throws but DnnlOp's constructor (dnnl::error).
#ifndef HOLDFAST_KERNELS_CPU_DNNL_ENGINE_H_
#define HOLDFAST_KERNELS_CPU_DNNL_ENGINE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/kernel.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace holdfast::cpu {

const dnnl::engine& DnnlEngine();
// Lets oneDNN use the context's number of threads on the calling thread, or one
// where a call of so few multiplications would wait for the others longer than
// it computes: on a small machine the client that sends the next op needs
// theirs.
void UseDnnlThreads(
    const KernelContext& context,
    int64_t multiplications = std::numeric_limits<int64_t>::max());

// The attributes every primitive here has: scratch memory comes from the
// caller.
dnnl::primitive_attr UserScratchpad();

class DnnlOp {
 public:
  struct Operand {
    int arg;                    // DNNL_ARG_...
    dnnl::memory::desc plain;   // as the tensor lies in memory
    dnnl::memory::desc wanted;  // as the primitive wants it
    bool output = false;
  };
  DnnlOp(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
         std::vector<Operand> operands);

  // `data`: the operands' tensors, in order. The elements of outputs that
  // their layout does not cover stay as they are.
  absl::Status Run(KernelContext& context, absl::Span<void* const> data);

 private:
  using Args = std::unordered_map<int, dnnl::memory>;
  struct Reorder {
    size_t operand;
    dnnl::reorder primitive;
    Args args;
    dnnl::memory plain, wanted;
  };
  struct Scratchpad {
    size_t offset;
    dnnl::memory memory;
  };

  size_t Reserve(size_t bytes);
  void AddScratchpad(const dnnl::memory::desc& desc, Args* args);

  dnnl::primitive primitive_;
  Args args_;
  std::vector<dnnl::memory> memories_;  // by operand, as the primitive sees it
  std::vector<size_t> offsets_;         // of `wanted` in scratch, or kDirect
  std::vector<Reorder> before_, after_;
  std::vector<Scratchpad> scratchpads_;
  size_t scratch_bytes_ = 0;
};

// Everything that decides how a DnnlOp is built: op, sizes, strides, threads.
using DnnlKey = absl::InlinedVector<int64_t, 24>;

// This thread's DnnlOp for `key`, made by `make` if it is not there. The
// pointer is valid until the next call on this thread. Unimplemented if oneDNN
// refuses.
absl::StatusOr<DnnlOp*> CachedDnnlOp(
    const DnnlKey& key, absl::FunctionRef<std::unique_ptr<DnnlOp>()> make);

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_DNNL_ENGINE_H_
