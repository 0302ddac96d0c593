// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// OpSchema: one row of the op table (ops.def) in parsed form, and the table
// itself. Everything that must know "which ops are there" reads this.
// Thread-safety: the table is built once and immutable afterwards.
#ifndef HOLDFAST_OPS_OP_SCHEMA_H_
#define HOLDFAST_OPS_OP_SCHEMA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/attrs.h"
#include "ops/infer.h"

namespace holdfast {

// In ops/op_id.h: most readers of schemas need not know which ops there are.
enum class OpId : uint16_t;

// Flags of a row; combine with |.
enum OpFlags : uint32_t {
  kNone = 0,
  kElementwise = 1u << 0,  // output element i depends on input elements i only
  kReduce = 1u << 1,
  kView = 1u << 2,         // outputs alias input 0; no kernel runs
  kInplace = 1u << 3,      // an in-place form `name_` exists: writes input 0
  kInplaceOnly = 1u << 4,  // only the in-place form exists
  kRandom = 1u << 5,       // draws from the session's Philox stream
  kNoGrad = 1u << 6,       // not differentiable: no gradient rule
  kChecksData = 1u << 7,   // can fail on element values (indices): the client
                           // notes the caller's source line
  kMutates = 1u << 8,      // writes its `Tensor!` parameters (optimizer steps)
  kDataShape = 1u << 9,    // some output sizes depend on element values: the
                           // rule says kUnknownSize, the kernel's companion
                           // (kernels/kernel.h, SizesFn) what they are
  kInternal = 1u << 10,    // emitted by gradient rules; no public function
  kLoadsOnce = 1u << 11,  // with kChecksData: the kernel checks an index at the
                          // load that uses it (kernels/cpu/load_once.h) and
                          // needs no private copy
  kComplex = 1u << 12,    // takes complex tensors too
  kAnyDType = 1u << 13,   // its kernel stores every dtype itself (moves or
                          // converts elements); for others the device widens
                          // 16-bit floats and narrow integers around it
  kReadsRandomState = 1u << 14,  // the result says where the session's Philox
                                 // stream is; draws nothing
  kDeviceSized = 1u << 15,  // some output sizes are the device's choice, from
                            // the inputs' shapes alone: told as kDataShape's,
                            // but no element is looked at
};

// Ops whose rule leaves sizes unknown.
inline constexpr uint32_t kUnknownSizes = kDataShape | kDeviceSized;

enum class ParamKind : uint8_t {
  kTensor,      // Tensor
  kOptTensor,   // Tensor?
  kTensorList,  // Tensor[]
  kOperand,     // Operand: a tensor or a Python number
  kOptOperand,  // Operand?
  kInt,         // int
  kInts,        // int[]; the caller may pass one int
  kFloat,       // float
  kBool,        // bool
  kScalar,      // Scalar: bool, int or float, its type kept
  kStr,         // str
  kDType,       // dtype
};

struct OpParam {
  std::string name;
  ParamKind kind;
  bool nullable = false;      // `?`: None is allowed
  bool mutated = false;       // `Tensor!` / `Tensor[]!`
  bool keyword_only = false;  // after `*`
  bool has_default = false;
  AttrValue default_value;  // None for tensors
  int tensor_slot = -1;     // index among tensor parameters, or -1
  int attr_slot = -1;       // index among attributes, or -1
  // int[2]-style parameters repeat a single int this often; 0: as given.
  int repeat = 0;
};

struct OpSchema {
  OpId id;
  std::string name;       // "add"
  std::string signature;  // as in the table
  std::vector<OpParam> params;
  int num_tensors = 0;  // tensor parameters (slots)
  int num_attrs = 0;    // attribute slots
  int num_lists = 0;    // Tensor[] parameters: all or none, equal lengths
  int num_outputs = 1;  // 0 for ops that only mutate
  // Bit per attribute slot that a call must set: neither default nor operand.
  uint32_t required_attrs = 0;
  // Bit per tensor slot whose dtype decides the computation type.
  uint32_t promoted_inputs = 0;
  std::vector<int> attr_params;    // attribute slot -> index into params
  std::vector<int> tensor_params;  // tensor slot -> index into params
  uint32_t flags = 0;
  int since = 1;  // protocol minor version that introduced the op
  std::string doc;
  InferFn infer = nullptr;

  bool has(OpFlags flag) const { return (flags & flag) != 0; }
  bool has_any(uint32_t some) const { return (flags & some) != 0; }
};

// Counters that a kRandom op takes from its stream: one per element of its
// first output, whatever its kernel does with them. Client and server count
// alike.
inline uint64_t RandomCounters(const TensorSpec& first_output) {
  const int64_t elements = first_output.numel();
  return elements > 0 ? static_cast<uint64_t>(elements) : 1;
}

const OpSchema& GetOp(OpId id);
// nullptr when no op has that name. In-place names (`add_`) are not ops: look
// up `add` and set OpCall.inplace.
const OpSchema* FindOp(absl::string_view name);
absl::Span<const OpSchema> AllOps();
// 64-bit fingerprint of names, signatures and flags: equal on both sides iff
// op ids and attribute slots mean the same.
uint64_t OpTableFingerprint();

// The two steps behind the table, for tests and tools. A row that breaks the
// grammar in ops.def is InvalidArgument; in the table itself it ends the
// process at start-up.
absl::StatusOr<OpSchema> ParseOpRow(absl::string_view name,
                                    absl::string_view signature,
                                    uint32_t flags);
uint64_t FingerprintOf(absl::Span<const OpSchema> ops);

// Longest int list accepted: two entries per dimension (padding).
inline constexpr int kMaxListLength = 2 * kMaxRank;

// Type-checks one attribute value against its parameter ("[name] ...").
absl::Status CheckAttr(const OpSchema& schema, int slot,
                       const AttrValue& value);

}  // namespace holdfast

#endif  // HOLDFAST_OPS_OP_SCHEMA_H_
