// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of casts and copies. Set() converts a gradient to its input's type
// and moves it to its input's device.
#include "autograd/rule_ops.h"

namespace holdfast {

// g
HOLDFAST_GRAD(to) { c.Set(0, c.grad()); }
HOLDFAST_GRAD(clone) { c.Set(0, c.grad()); }

// g, on the device that input came from
HOLDFAST_GRAD(to_device) { c.Set(0, c.grad()); }

// In-place: what was there before has no influence; g, summed, to src.
HOLDFAST_GRAD(copy) {
  if (c.needs(1)) SetBroadcast(c, 1, c.grad());
}

// In-place: zero.
HOLDFAST_GRAD(fill) { static_cast<void>(c); }

}  // namespace holdfast
