// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// OpId: the ops by ordinal. Apart from op_schema.h because whoever includes
// this is compiled again when the op table grows.
#ifndef HOLDFAST_OPS_OP_ID_H_
#define HOLDFAST_OPS_OP_ID_H_

#include <cstdint>

namespace holdfast {

// The ordinal in this build's table. Never crosses the wire as such: Hello
// maps names to ids, and equal tables (by fingerprint) make the map identity.
enum class OpId : uint16_t {
#define OP(name, signature, infer, flags, since, doc) name,
#include "ops/ops.def"
#undef OP
  kCount
};
inline constexpr int kNumOps = static_cast<int>(OpId::kCount);

}  // namespace holdfast

#endif  // HOLDFAST_OPS_OP_ID_H_
