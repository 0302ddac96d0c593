# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Functions of functions: derivatives and batches, by torch.func's names.

Derivatives nest: grad(grad(f)), vmap(grad(f)), jacfwd(jacrev(f)). Results have a
history only if an argument has one, or something that the function closes over.
"""

from holdfast.func.batch import vmap
from holdfast.func.derivatives import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from holdfast.func.modules import functional_call, stack_module_state
from holdfast.missing import module_getattr

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]

__getattr__ = module_getattr("torch.func")
