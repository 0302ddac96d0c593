// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of random ops: the drawn numbers are constants.
#include "autograd/rule_ops.h"

namespace holdfast {

// g / (1 - p) where kept
HOLDFAST_GRAD(dropout, 0, Bit(1)) {
  if (!c.grad()) return;
  const double p = c.attrs().Float("p");
  // With p = 1 nothing is kept.
  const Value scaled = Mul(c, c.grad(), p < 1.0 ? 1.0 / (1.0 - p) : 0.0);
  c.Set(0, Where(c, c.output(1), scaled, int64_t{0}));
}

}  // namespace holdfast
