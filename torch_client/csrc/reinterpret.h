// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A storage's elements as those of another dtype: what torch.save, torch.load
// and deepcopy do with every storage, whose bytes they copy.
#pragma once

#include <c10/core/ScalarType.h>

#include "api.h"

namespace holdfast_torch {

// The first `count` elements of `whole`'s memory as a flat tensor of `type`,
// over the same memory. Takes the GIL: no lock may be held. Throws.
Handle Reinterpreted(const Handle& whole, int64_t count, c10::ScalarType type);

}  // namespace holdfast_torch
