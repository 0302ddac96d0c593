// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of sorting and selecting: g at the indices that were chosen, which
// are different along dim.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// g written into zeros at the indices; with `reduced`, along a dimension that
// the results may lack.
void WriteAtIndices(GradContext& c, bool reduced) {
  if (!c.grad()) return;
  const TensorSpec& input = c.input_spec(0);
  const int rank = input.rank();
  if (rank == 0) {
    c.Set(0, c.grad());
    return;
  }
  const int64_t dim = DimAttr(c, rank);
  Value grad = c.grad();
  Value indices = c.output(1);
  if (reduced) {
    const uint64_t mask = uint64_t{1} << dim;
    Dims shape = input.shape;
    shape[dim] = 1;
    grad = ViewAs(c, RestoreDims(c, grad, input, mask), shape);
    indices = ViewAs(c, RestoreDims(c, indices, input, mask), shape);
  }
  c.Set(0, c.Call(OpId::scatter, {Zeros(c, input), indices, grad},
                  {{"dim", dim}}));
}

}  // namespace

HOLDFAST_GRAD(sort, 0, Bit(1)) { WriteAtIndices(c, /*reduced=*/false); }
HOLDFAST_GRAD(topk, 0, Bit(1)) { WriteAtIndices(c, /*reduced=*/false); }
HOLDFAST_GRAD(kthvalue, 0, Bit(1)) { WriteAtIndices(c, /*reduced=*/true); }
HOLDFAST_GRAD(median, 0, Bit(1)) { WriteAtIndices(c, /*reduced=*/true); }
HOLDFAST_GRAD(mode, 0, Bit(1)) { WriteAtIndices(c, /*reduced=*/true); }

}  // namespace holdfast
