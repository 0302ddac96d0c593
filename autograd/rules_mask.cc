// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of boolean masks. Choosing entries and putting them back are each
// other's adjoint.
#include <utility>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {

// Zeros with g in the places of the mask.
HOLDFAST_GRAD(index_mask, Bit(1)) {
  c.Set(0, c.Call(OpId::mask_put,
                  {Zeros(c, c.input_spec(0)), c.input(1), c.grad()},
                  {{"dim", c.attrs().Get("dim")}}));
}

// g with zeros in the places of the mask, and what it has there.
HOLDFAST_GRAD(mask_put, Bit(1)) {
  const AttrValue dim = c.attrs().Get("dim");
  if (c.needs(0)) {
    const TensorSpec zero = ContiguousSpec(c.input_spec(0).dtype, {});
    c.Set(0, c.Call(OpId::mask_put, {c.grad(), c.input(1), Zeros(c, zero)},
                    {{"dim", dim}}));
  }
  if (!c.needs(2)) return;
  const Value part =
      c.Call(OpId::index_mask, {c.grad(), c.input(1)}, {{"dim", dim}});
  const Dims& shape = c.input_spec(2).shape;
  c.Set(2, c.attrs().Bool("partial") ? PadTo(c, part, shape)
                                     : SumTo(c, part, shape));
}

}  // namespace holdfast
