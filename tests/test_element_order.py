# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Every row of op_cases.py gives what it gives for row-major tensors also where its
tensors lie in another order, which results of elementwise ops then keep."""

import numpy as np
import pytest
from all_op_cases import CASES

import holdfast
import holdfast.nn


@pytest.fixture(scope="module")
def local_session(daemon):
    holdfast.connect(daemon.address("shm"))
    yield
    holdfast.disconnect()


# What these say depends on strides, in PyTorch too.
OF_STRIDES = {"view", "as_strided", "as_strided_copy", "as_strided_scatter"}


def first_of_each_op():
    chosen = {}
    for case in CASES:
        deep = any(a.ndim > 1 for a in case.arrays())
        if deep and not case.random and case.op not in OF_STRIDES:
            chosen.setdefault(case.op, case)
    return chosen.values()


def lying(array, order):
    """A tensor of the array's elements; "turned": column-major, "kept": all but the
    last dimension are. An elementwise op makes it, so its origin does not matter."""
    if order == "plain" or array.ndim < 2:
        return holdfast.from_numpy(array)
    dims = list(reversed(range(array.ndim)))
    if order == "kept":
        dims = dims[1:] + dims[:1]
    places = [dims.index(dim) for dim in range(array.ndim)]
    turned = holdfast.from_numpy(np.array(array.transpose(dims), order="C"))
    tensor = turned.permute(places).clone()
    assert (
        order == "kept"
        or 1 in array.shape
        or tensor.is_contiguous() is (array.size < 2)
    )
    return tensor


def outcome(case, order):
    """Result and gradients, or the error."""
    inputs = [lying(np.array(a, order="C"), order) for a in case.arrays()]
    try:
        for i in case.grad:
            inputs[i].requires_grad_()
        result = case.ours(holdfast, *inputs)
        result = result[0] if isinstance(result, tuple) else result
        if case.grad:
            # Not the same for all elements, and in another order than either.
            weight = np.cos(np.arange(result.numel())).reshape(tuple(result.shape))
            weight = holdfast.from_numpy(weight).to(result.dtype)
            (result * weight).sum().backward()
    except holdfast.errors.OpError as error:
        # A complex number's parts must lie side by side.
        if order == "turned" and str(error).startswith("[view_as_complex]"):
            return outcome(case, "kept")
        return [str(error)]
    gradients = [inputs[i].grad for i in case.grad]
    return [x if x is None else x.detach().numpy() for x in (result, *gradients)]


def alike(a, b):
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return a == b
    return a.shape == b.shape and np.allclose(a, b, 1e-9, 1e-12, equal_nan=True)


@pytest.mark.parametrize("case", first_of_each_op(), ids=lambda case: case.name)
def test_the_order_does_not_matter(local_session, case):
    plain, turned = outcome(case, "plain"), outcome(case, "turned")
    assert len(plain) == len(turned), (plain, turned)
    for a, b in zip(plain, turned):
        assert alike(a, b), (a, b)
