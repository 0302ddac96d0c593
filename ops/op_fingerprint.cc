// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/op_fingerprint.h"

#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {

uint64_t OpRowsFingerprint() {
  OpFingerprint fingerprint(kNumOps);
#define OP(name, signature, infer, flags, since, doc) \
  fingerprint.Add(#name, signature, flags);
#include "ops/ops.def"
#undef OP
  return fingerprint.value();
}

}  // namespace holdfast
