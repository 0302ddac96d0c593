# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Every row of op_cases.py, against NumPy, finite differences and the other
transport; and that no op of the table is without a row."""

import numpy as np
import pytest
from all_op_cases import CASES

import holdfast
import holdfast.nn

FORWARD = [pytest.param(c, id=c.name) for c in CASES if not c.random]
GRADIENT = [pytest.param(c, id=c.name) for c in CASES if c.grad]


@pytest.fixture(scope="module", params=["shm", "grpc"])
def session(request, daemon):
    holdfast.connect(daemon.address(request.param))
    yield request.param
    holdfast.disconnect()


@pytest.fixture(scope="module")
def local_session(daemon):
    holdfast.connect(daemon.address("shm"))
    yield
    holdfast.disconnect()


def tensors(arrays, differentiable=()):
    made = [holdfast.from_numpy(np.array(a, order="C")) for a in arrays]
    for i in differentiable:
        made[i].requires_grad_()
    return made


def single(result):
    """Cases return one tensor, or one with company (indices, masks)."""
    return result[0] if isinstance(result, tuple) else result


def run(case, arrays):
    return single(case.ours(holdfast, *tensors(arrays))).detach().numpy()


def test_every_op_has_a_case():
    table = {op["name"] for op in holdfast._C.schema()}
    public = set(holdfast._registry.FUNCTIONS) | set(dir(holdfast.Tensor))
    cases = {c.op for c in CASES}
    assert table <= cases
    # Composites have cases too, under the name of a public function or method.
    assert cases - table <= public | {c for c in cases if "." in c}


def test_differentiable_ops_have_gradient_cases():
    differentiable = {op["name"] for op in holdfast._C.schema() if op["differentiable"]}
    random = {"dropout"}  # test_random_gradients
    no_input = {"fill"}  # its gradient is zero: covered with the rest below
    assert differentiable - {c.op for c in CASES if c.grad} <= random | no_input


@pytest.mark.parametrize("case", FORWARD)
def test_forward(session, case):
    arrays = case.arrays()
    with np.errstate(all="ignore"):
        expected = np.asarray(case.reference(*arrays))
    precisions = [(np.float64, 1e-10), (np.float32, 1e-4)]
    if not any(a.dtype == np.float64 for a in arrays):
        precisions = precisions[1:]  # results are of the default type
    for dtype, tolerance in precisions:
        cast = [a.astype(dtype) if a.dtype == np.float64 else a for a in arrays]
        got = run(case, cast)
        assert got.shape == expected.shape
        if expected.dtype.kind in "bi":
            assert got.dtype.kind == expected.dtype.kind
            if case.op in ("floor_divide", "to"):
                continue  # truncation differs by rounding
        np.testing.assert_allclose(got, expected, tolerance, tolerance)


@pytest.mark.parametrize("case", [c for c in CASES if c.random], ids=lambda c: c.op)
def test_random(session, case):
    holdfast.manual_seed(11)
    first = single(case.ours(holdfast)).numpy().copy()
    case.reference(first)
    assert not np.array_equal(first, single(case.ours(holdfast)).numpy())
    holdfast.manual_seed(11)
    assert np.array_equal(first, single(case.ours(holdfast)).numpy())


def weighted(case, arrays, weight):
    """A scalar function of the inputs, in NumPy arrays."""
    return float((run(case, arrays) * weight).sum())


def numeric_gradient(case, arrays, weight, i, eps=1e-6):
    gradient = np.zeros_like(arrays[i])
    for at in np.ndindex(arrays[i].shape):
        sides = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[i][at] += sign * eps
            sides.append(weighted(case, moved, weight))
        gradient[at] = (sides[0] - sides[1]) / (2 * eps)
    return gradient


@pytest.mark.parametrize("case", GRADIENT)
def test_gradient(local_session, case):
    """Over one transport: test_transports_agree compares the other."""
    arrays = case.arrays()
    inputs = tensors(arrays, case.grad)
    out = single(case.ours(holdfast, *inputs))
    weight = np.random.default_rng(1).uniform(0.5, 1.5, out.shape)
    w = holdfast.from_numpy(weight)
    wanted = [inputs[i] for i in case.grad]
    if not out.requires_grad:
        pytest.fail("the result does not require a gradient")
    got = holdfast.autograd.grad((out * w).sum(), wanted, create_graph=case.second)
    # A recorded gradient may take other ops than a plain one.
    plain = got
    if case.second:
        plain = holdfast.autograd.grad((out * w).sum(), wanted)
    for i, recorded, g in zip(case.grad, got, plain):
        expected = numeric_gradient(case, arrays, weight, i)
        np.testing.assert_allclose(recorded.detach().numpy(), expected, 2e-5, 2e-5)
        np.testing.assert_allclose(g.detach().numpy(), expected, 2e-5, 2e-5)
    if case.second:
        check_second(case, arrays, weight)


def check_second(case, arrays, weight):
    """Gradient of the gradient, by differences of the analytic gradient along
    one direction."""

    def analytic(values):
        inputs = tensors(values, case.grad)
        out = single(case.ours(holdfast, *inputs))
        loss = (out * holdfast.from_numpy(weight)).sum()
        grads = holdfast.autograd.grad(
            loss, [inputs[i] for i in case.grad], create_graph=True
        )
        return inputs, grads

    rng = np.random.default_rng(2)
    direction = [rng.uniform(-1, 1, arrays[i].shape) for i in case.grad]
    inputs, grads = analytic(arrays)
    total = sum(
        (g * holdfast.from_numpy(np.asarray(d))).sum() for g, d in zip(grads, direction)
    )
    eps = 1e-6
    sides = []
    for sign in (1, -1):
        moved = [a.copy() for a in arrays]
        for i, d in zip(case.grad, direction):
            moved[i] = moved[i] + sign * eps * d
        sides.append([g.detach().numpy().copy() for g in analytic(moved)[1]])
    expected = [(p - m) / (2 * eps) for p, m in zip(*sides)]
    if not total.requires_grad:  # linear: the second derivative is zero
        for e in expected:
            np.testing.assert_allclose(e, 0, atol=1e-4)
        return
    second = holdfast.autograd.grad(
        total, [inputs[i] for i in case.grad], allow_unused=True
    )
    for got, e in zip(second, expected):
        value = 0 if got is None else got.numpy()
        np.testing.assert_allclose(value, e, 1e-4, 1e-4)


def test_random_gradients(session):
    x = holdfast.ones(50, dtype=holdfast.float64, requires_grad=True)
    y = holdfast.nn.functional.dropout(x, 0.5)
    (g,) = holdfast.autograd.grad(y.sum(), [x])
    # The same elements were kept in both directions.
    assert np.array_equal(g.numpy(), y.detach().numpy())


def test_fill_cuts_the_gradient(session):
    x = holdfast.ones(3, requires_grad=True)
    y = x * 2
    y.fill_(1.0)
    (g,) = holdfast.autograd.grad((y + x).sum(), [x])
    assert g.tolist() == [1.0, 1.0, 1.0]


def test_transports_agree(daemon):
    """Bit by bit: values, and gradients where there are any."""
    results = []
    for transport in ("shm", "grpc"):
        holdfast.connect(daemon.address(transport))
        holdfast.manual_seed(5)
        values = []
        for case in CASES:
            inputs = tensors(case.arrays(), case.grad)
            out = single(case.ours(holdfast, *inputs))
            values.append((case.name, out.detach().numpy().tobytes()))
            if case.grad:
                grads = holdfast.autograd.grad(
                    out.sum(), [inputs[i] for i in case.grad]
                )
                values += [(case.name, g.numpy().tobytes()) for g in grads]
        results.append(values)
        holdfast.disconnect()
    for shm, grpc in zip(*results):
        assert shm == grpc, f"{shm[0]} differs between the transports"
