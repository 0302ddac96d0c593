# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""gradcheck and gradgradcheck of every op that has a gradient, through the op cases,
over transposed, stepped and broadcast tensors.

test_op_cases.py checks each gradient element by element; here one random product
u J v stands for a Jacobian (fast_mode), except for the smallest case of each op.
"""

import numpy as np
import pytest
from all_op_cases import CASES

import holdfast
from holdfast.autograd import gradcheck, gradgradcheck

# op -> what is said to whoever asks for its second derivative.
ONCE = {
    "ctc_loss": "ctc_loss",
    "rnn_layer": "recurrent layer is not differentiable",
    "nn.functional.ctc_loss": "ctc_loss",
}

# Where a gradient is right and its own gradient is not: exclusive products are
# computed from values there.
NOT_TWICE = {"scatter_reduce([2,4],[2,3],[2,3]) zeros"}

BY_OP = {}
for _case in CASES:
    if _case.grad and not _case.random:
        BY_OP.setdefault(_case.op, []).append(_case)
OPS = sorted(BY_OP)
TABLE = [op for op in holdfast._C.schema() if op["name"] in BY_OP]
ELEMENTWISE = [op["name"] for op in TABLE if "elementwise" in op["flags"]]


@pytest.fixture(scope="module")
def session(daemon):
    """Over one transport: test_op_cases.py compares the other."""
    holdfast.connect(daemon.address("shm"))
    yield
    holdfast.disconnect()


def plain(array):
    return holdfast.from_numpy(np.array(array, order="C"))


def transposed(array):
    """The same values with the order of the dimensions in memory reversed."""
    order = tuple(reversed(range(array.ndim)))
    return plain(array.transpose(order)).permute(order)


def stepped(array):
    """The same values, each with a gap behind it."""
    if array.ndim == 0:
        return plain(array)
    return plain(np.repeat(array, 2, axis=-1))[..., ::2]


def inputs_of(case, layout):
    tensors = []
    for i, array in enumerate(case.arrays()):
        differentiable = i in case.grad
        tensor = (layout if differentiable else plain)(array)
        tensors.append(tensor.detach().requires_grad_() if differentiable else tensor)
    return tuple(tensors)


def strided_inputs(case, layout):
    """In that layout, unless the case makes a view that wants another."""
    inputs = inputs_of(case, layout)
    try:
        function_of(case)(*inputs)
    except RuntimeError as error:
        assert "stride" in str(error), (case.name, error)
        return inputs_of(case, plain)
    return inputs


def function_of(case):
    def function(*tensors):
        # Those without a gradient may be written by the case.
        given = [x if x.requires_grad else x.clone() for x in tensors]
        result = case.ours(holdfast, *given)
        return result[0] if isinstance(result, tuple) else result

    return function


def check(checked, case, function, inputs, **options):
    # The smallest case tells about undefined gradients.
    options.setdefault("check_undefined_grad", not options.get("fast_mode", False))
    try:
        assert checked(function, inputs, **options)
    except RuntimeError as error:
        raise AssertionError(f"{case.name}: {error}") from error


def test_every_differentiable_op_is_here():
    differentiable = {op["name"] for op in holdfast._C.schema() if op["differentiable"]}
    assert differentiable - set(OPS) <= {"dropout", "fill"}  # see test_op_cases.py


@pytest.mark.parametrize("op", OPS)
def test_transposed(session, op):
    for case in BY_OP[op]:
        inputs = strided_inputs(case, transposed)
        check(gradcheck, case, function_of(case), inputs, fast_mode=True)


@pytest.mark.parametrize("op", [op for op in OPS if op not in ONCE])
def test_second_derivatives_of_stepped_tensors(session, op):
    for case in BY_OP[op]:
        if case.name in NOT_TWICE:
            continue
        inputs = strided_inputs(case, stepped)
        check(
            gradgradcheck,
            case,
            function_of(case),
            inputs,
            fast_mode=True,
            gen_non_contig_grad_outputs=True,
        )


@pytest.mark.parametrize("op", [op["name"] for op in TABLE])
def test_the_smallest_case_in_full(session, op):
    case = min(BY_OP[op], key=lambda c: sum(a.size for a in c.arrays()) or 10**6)
    inputs = inputs_of(case, plain)
    check(gradcheck, case, function_of(case), inputs, check_grad_dtypes=True)


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_broadcast(session, op):
    """Elementwise ops of tensors whose first dimension is one row, repeated."""
    for case in BY_OP[op]:
        inputs = inputs_of(case, plain)
        if not all(x.dim() and x.shape[0] > 1 for x in inputs):
            continue
        shapes = [tuple(x.shape) for x in inputs]
        rows = tuple(
            x.detach()[:1].clone().requires_grad_() if x.requires_grad else x
            for x in inputs
        )

        def function(*given, f=function_of(case), shapes=shapes):
            return f(
                *[x.expand(s) if x.requires_grad else x for x, s in zip(given, shapes)]
            )

        check(gradcheck, case, function, rows, fast_mode=True)


@pytest.mark.parametrize("op", ONCE)
def test_second_derivatives_that_are_refused_say_so(session, op):
    for case in BY_OP[op]:
        inputs = inputs_of(case, plain)
        with pytest.raises((RuntimeError, NotImplementedError), match=ONCE[op]):
            gradgradcheck(function_of(case), inputs, fast_mode=True)
