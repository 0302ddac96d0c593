# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Operators, with tensors and numbers, against NumPy."""

import operator

import numpy as np
import pytest

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.lt,
    operator.le,
    operator.eq,
    operator.ne,
    operator.gt,
    operator.ge,
]
A = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -6.0]], dtype=np.float32)
B = np.array([2.0, -4.0, 0.5], dtype=np.float32)


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
def test_binary(torch, op):
    a, b = torch.tensor(A), torch.tensor(B)
    np.testing.assert_allclose(op(a, b).numpy(), op(A, B), rtol=1e-6)
    np.testing.assert_allclose(op(a, 2.5).numpy(), op(A, np.float32(2.5)), rtol=1e-6)
    np.testing.assert_allclose(op(2, a).numpy(), op(np.float32(2), A), rtol=1e-6)


def test_power(torch):
    a = torch.tensor(np.abs(A))
    np.testing.assert_allclose((a**2).numpy(), A**2, rtol=1e-6)
    np.testing.assert_allclose((2**a).numpy(), 2 ** np.abs(A), rtol=1e-5)
    np.testing.assert_allclose((a**a).numpy(), np.abs(A) ** np.abs(A), rtol=1e-5)
    with pytest.raises(NotImplementedError):
        pow(a, 2, 3)


@pytest.mark.parametrize(
    "op", [operator.and_, operator.or_, operator.xor], ids=lambda op: op.__name__
)
def test_bitwise(torch, op):
    a, b = np.array([12, 10, -1]), np.array([10, 3, 5])
    assert op(torch.tensor(a), torch.tensor(b)).tolist() == op(a, b).tolist()
    assert op(torch.tensor(a), 6).tolist() == op(a, 6).tolist()
    p, q = np.array([True, False]), np.array([True, True])
    assert op(torch.tensor(p), torch.tensor(q)).tolist() == op(p, q).tolist()


def test_unary(torch):
    a = torch.tensor(A)
    np.testing.assert_array_equal((-a).numpy(), -A)
    np.testing.assert_array_equal(abs(a).numpy(), np.abs(A))
    assert +a is a
    assert (~torch.tensor([True, False])).tolist() == [False, True]
    assert (~torch.tensor([0, 5])).tolist() == [-1, -6]
    with pytest.raises(RuntimeError):
        -torch.tensor([True])


@pytest.mark.parametrize(
    "op, text",
    [
        (operator.iadd, "x += y"),
        (operator.isub, "x -= y"),
        (operator.imul, "x *= y"),
        (operator.itruediv, "x /= y"),
        (operator.ifloordiv, "x //= y"),
        (operator.imod, "x %= y"),
    ],
)
def test_inplace_keeps_the_object(torch, op, text):
    x, array = torch.tensor(A), A.copy()
    same = x
    x = op(x, 2.0)
    array = op(array, np.float32(2.0))
    assert x is same, text
    np.testing.assert_allclose(x.numpy(), array, rtol=1e-6)


def test_number_types_keep_their_category(torch):
    i = torch.tensor([1, 2])
    assert (i + 1).dtype is torch.int64
    assert (i + True).dtype is torch.int64
    assert (i + 1.0).dtype is torch.float32
    assert (i / 2).dtype is torch.float32
    assert (torch.tensor([1], dtype=torch.uint8) + 1).dtype is torch.uint8
    assert (torch.tensor([True]) + True).dtype is torch.bool
    assert (torch.tensor([1.0], dtype=torch.float64) + 1).dtype is torch.float64
    assert (i + np.float32(1.5)).tolist() == [2.5, 3.5]
    assert (i + np.int8(1)).dtype is torch.int64
    assert (i + np.bool_(True)).tolist() == [2, 3]
    assert torch.result_type(i, 1.0) is torch.float32
    assert torch.promote_types(torch.uint8, torch.int8) is torch.int16


def test_arrays_mix_with_tensors(torch):
    a = torch.tensor([1.0, 2.0])
    array = np.array([3.0, 4.0], dtype=np.float32)
    for result in (a + array, array + a):
        assert isinstance(result, torch.Tensor)
        assert result.tolist() == [4.0, 6.0]


@pytest.mark.parametrize("other", ["s", None, object(), [1, 2], {}], ids=repr)
def test_other_types_are_refused_as_python_refuses_them(torch, other):
    a = torch.tensor([1.0])
    with pytest.raises(TypeError, match="unsupported operand"):
        a + other
    with pytest.raises(TypeError):
        a < other
    assert (a == other) is False
    assert (a != other) is True


def test_reflected_methods_of_other_classes_run(torch):
    class Other:
        def __radd__(self, tensor):
            return "radd"

    assert torch.tensor([1.0]) + Other() == "radd"


def test_matmul(torch):
    a = np.random.default_rng(0).random((2, 3, 4), dtype=np.float32)
    b = np.random.default_rng(1).random((4, 5), dtype=np.float32)
    result = torch.tensor(a) @ torch.tensor(b)
    np.testing.assert_allclose(result.numpy(), a @ b, rtol=1e-5)
    with pytest.raises(TypeError):
        torch.tensor(a) @ 2.0


def test_conversions(torch):
    assert float(torch.tensor(2)) == 2.0
    assert int(torch.tensor([2.7])) == 2
    assert bool(torch.tensor(0.0)) is False
    assert [10, 20, 30][torch.tensor(1)] == 20
    assert f"{torch.tensor(1.23456):.2f}" == "1.23"
    assert f"{torch.tensor(1.5)} {torch.tensor(True)}" == "1.5 True"
    assert f"{torch.tensor([1.5])}" == "tensor([1.5000])"
    assert round(float(torch.tensor(1.5)), 1) == 1.5
    with pytest.raises(TypeError, match="index"):
        [1][torch.tensor(0.0)]
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.ones(2).item()


def test_sequence_protocol(torch):
    x = torch.arange(6).view(3, 2)
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    a, b, c = x
    assert c.tolist() == [4, 5]
    assert 5 in x and 6 not in x
    with pytest.raises(TypeError, match="0-d"):
        len(torch.tensor(1))
    with pytest.raises(TypeError, match="0-d"):
        iter(torch.tensor(1))


def test_hash_is_identity(torch):
    x, y = torch.ones(2), torch.ones(2)
    assert len({x, y, x}) == 2
    assert {x: 1}[x] == 1
