// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The sizes of a call of attention, for every device.
// Thread-safety: plain values.
#ifndef HOLDFAST_KERNELS_ATTENTION_SHAPE_H_
#define HOLDFAST_KERNELS_ATTENTION_SHAPE_H_

#include <algorithm>
#include <cstdint>

#include "ops/attrs.h"
#include "ops/tensor_spec.h"

namespace holdfast {

// query [lead..., l, e], key [lead..., s, e], value [lead..., s, v].
struct AttentionShape {
  Dims lead;
  int64_t heads = 1, l = 0, s = 0, e = 0, v = 0;
  bool causal = false;
  double scale = 1;

  AttentionShape(const Attrs& attrs, const TensorSpec& query,
                 const TensorSpec& value)
      : lead(query.shape.begin(), query.shape.end() - 2),
        heads(NumElements(lead)),
        l(query.shape[query.rank() - 2]),
        s(value.shape[value.rank() - 2]),
        e(query.shape.back()),
        v(value.shape.back()),
        causal(attrs.Bool("causal")),
        scale(attrs.Float("scale")) {}

  // Keys that rows below `row` see.
  int64_t Seen(int64_t row) const { return causal ? std::min(s, row) : s; }
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_ATTENTION_SHAPE_H_
