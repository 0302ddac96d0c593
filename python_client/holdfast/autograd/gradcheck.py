# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""PyTorch's gradcheck and gradgradcheck: gradients against finite differences."""

import warnings

from holdfast import _C

Tensor = _C.Tensor


class GradcheckError(RuntimeError):
    """A gradient differs from the finite difference, or is wrong otherwise."""


def as_tuple(x):
    """What a function of one tensor or several gives, as a tuple."""
    if isinstance(x, tuple):
        return x
    return tuple(x) if isinstance(x, list) else (x,)


def _check_inputs(inputs, check_sparse_nnz, masked):
    if check_sparse_nnz or masked:
        from holdfast.errors import UnsupportedError

        raise UnsupportedError("holdfast has no sparse tensors to check.")
    some = False
    for i, x in enumerate(inputs):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        some = True
        if x.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating "
                "point or complex. This check will likely fail if all the inputs are "
                "not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only "
                "supports inputs that are non-overlapping to be able to compute the "
                "numerical gradients correctly. You should call .contiguous on the "
                "input before passing it to gradcheck."
            )
    if not some:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but "
            "none of the them have requires_grad=True."
        )


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    check_sparse_nnz=False,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Compares the gradients of func(*inputs) with central differences.

    func returns a tensor or a tuple of them; inputs is a tensor or a tuple, and
    those that require a gradient are checked (float64 or complex128; any strides
    without overlap). |analytical - numerical| <= atol + rtol |numerical| must hold
    for every element, or, with fast_mode, for one random product u J v. Backward
    must give the same numbers twice (nondet_tol). Batched gradients are a loop
    here, so that there is nothing more to check about them. Returns True; what
    fails raises GradcheckError (a RuntimeError), or returns False if not
    raise_exception. As torch.autograd.gradcheck.
    """
    if not (check_forward_ad or check_backward_ad):
        raise ValueError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    inputs = as_tuple(inputs)
    _check_inputs(inputs, check_sparse_nnz, masked)
    from holdfast.autograd.finite_differences import Check

    check = Check(func, inputs, eps, atol, rtol, nondet_tol)
    try:
        check.run()
        if not check.outputs:
            check.without_outputs()
            return True
        if check_backward_ad:
            (check.fast if fast_mode else check.slow)(check_grad_dtypes)
        if check_forward_ad:
            check.forward_mode()
        if check_backward_ad:
            check.zero_weights()
            if check_undefined_grad:
                check.undefined()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=None,
):
    """Compares the gradients of func's gradients with central differences.

    grad_outputs weight func's outputs (random if None; with every second element
    of a larger tensor if gen_non_contig_grad_outputs). The rest as in gradcheck;
    as torch.autograd.gradgradcheck.
    """
    inputs = as_tuple(inputs)
    _check_inputs(inputs, False, masked)
    outputs = [
        o for o in as_tuple(func(*inputs)) if isinstance(o, Tensor) and o.requires_grad
    ]
    if grad_outputs is None:
        from holdfast.autograd.finite_differences import random_like

        grad_outputs = random_like(outputs, gen_non_contig_grad_outputs)
    grad_outputs = as_tuple(grad_outputs)
    count = len(grad_outputs)

    from holdfast import autograd

    def gradients(*args):
        given, weights = args[: len(args) - count], args[len(args) - count :]
        outputs = [
            o
            for o in as_tuple(func(*given))
            if isinstance(o, Tensor) and o.requires_grad
        ]
        wanted = [x for x in given if isinstance(x, Tensor) and x.requires_grad]
        grads = autograd.grad(
            outputs, wanted, weights, create_graph=True, allow_unused=True
        )
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradients,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
    )
