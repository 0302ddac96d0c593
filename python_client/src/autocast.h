// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// torch.autocast: on this thread, ops take their inputs in the type that their
// policy says: matrix products and convolutions in 16 bits, what loses too much
// by that in float32 (Micikevicius et al. 2018, arXiv:1710.03740). The lists
// are PyTorch's, one for tensors on GPUs and one for those on the CPU. Guarded
// by the GIL; the state is the thread's.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_AUTOCAST_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_AUTOCAST_H_

#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "client/session.h"
#include "python_client/src/python.h"

namespace holdfast::python {

// Of kinds of devices (bit 0 the CPU, bit 1 GPUs), those where it is on.
extern thread_local int g_autocast;
inline bool AutocastOn() { return g_autocast != 0; }

// Whether the op would take one of its inputs in another type.
bool WantsCast(const OpSchema& op, absl::Span<const client::Tensor> inputs);
// Casts them. False with a Python error set.
bool CastInputs(const OpSchema& op,
                absl::InlinedVector<client::Tensor, 4>* inputs);

// _C.autocast_enter(gpu, enabled, dtype, cache) -> the state before, for
// _C.autocast_exit(state); _C.autocast_is_on(gpu), _C.autocast_dtype(gpu),
// _C.set_autocast(gpu, enabled), _C.set_autocast_dtype(gpu, dtype),
// _C.clear_autocast_cache().
void AppendAutocastFunctions(std::vector<PyMethodDef>* functions);

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_AUTOCAST_H_
