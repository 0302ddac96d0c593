# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors from data, from arrays, from nothing."""

import copy
import pickle
import struct

import numpy as np
import pytest

NUMPY_TYPES = ["bool", "uint8", "int32", "int64", "float32", "float64"]


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_round_trip_of_arrays(torch, name):
    array = (np.arange(24).reshape(2, 3, 4) % 7).astype(name)
    tensor = torch.tensor(array)
    assert tensor.dtype is getattr(torch, name)
    assert tensor.shape == (2, 3, 4)
    result = tensor.numpy()
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::2],
        lambda a: a[:, ::-1],
        lambda a: a.T,
        lambda a: a[1:, 2:3],
        lambda a: np.broadcast_to(a[0], (5, 6)),
        lambda a: a[0, 0],
        lambda a: a[:0],
        lambda a: np.asfortranarray(a),
    ],
)
def test_strided_arrays(torch, view):
    array = view(np.arange(24.0, dtype=np.float32).reshape(4, 6))
    np.testing.assert_array_equal(torch.tensor(array).numpy(), array)


def test_readonly_and_foreign_buffers(torch):
    array = np.arange(4.0)
    array.flags.writeable = False
    assert torch.tensor(array).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert torch.tensor(b"\x01\x02").tolist() == [1, 2]
    assert torch.tensor(memoryview(bytearray(3))).dtype is torch.uint8
    assert torch.tensor(np.array([1, 2], dtype="<i8")).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", ["uint16", "U3", ">f4"])
def test_unsupported_array_types_are_named(torch, dtype):
    with pytest.raises(TypeError, match="supported types are"):
        torch.tensor(np.zeros(2, dtype=dtype))


@pytest.mark.parametrize(
    "data, dtype, expected",
    [
        (1, "int64", 1),
        (1.5, "float32", 1.5),
        (True, "bool", True),
        ([1, 2], "int64", [1, 2]),
        ([1, 2.5], "float32", [1.0, 2.5]),
        ([True, 2], "int64", [1, 2]),
        ([[True], [False]], "bool", [[True], [False]]),
        ([], "float32", []),
        ([[], []], "float32", [[], []]),
        (((1, 2), [3, 4]), "int64", [[1, 2], [3, 4]]),
        (np.float64(2), "float64", 2.0),
        (range(3), "int64", [0, 1, 2]),
    ],
)
def test_nested_data(torch, data, dtype, expected):
    tensor = torch.tensor(data)
    assert tensor.dtype is getattr(torch, dtype)
    assert tensor.tolist() == expected


def test_data_of_tensors_and_arrays(torch):
    ones = [torch.tensor(1.0), torch.tensor(2.0)]
    assert torch.tensor(ones).tolist() == [1.0, 2.0]
    rows = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    assert torch.tensor(rows, dtype=torch.float64).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_dtype_argument(torch):
    assert torch.tensor([1.7, -1.7], dtype=torch.int64).tolist() == [1, -1]
    assert torch.tensor([0, 2], dtype=torch.bool).tolist() == [False, True]
    assert torch.tensor(np.arange(3), dtype=torch.float32).tolist() == [0.0, 1.0, 2.0]
    assert torch.tensor(1, dtype=float).dtype is torch.float64
    assert torch.zeros(1, dtype=int).dtype is torch.int64


@pytest.mark.parametrize(
    "data, error, text",
    [
        ([[1], [2, 3]], ValueError, "expected sequence of length 1 at dim 1"),
        ([[1], 2], TypeError, "expected a sequence at dim 1"),
        ("abc", TypeError, "could not infer dtype of str"),
        ([1, "a"], TypeError, "could not infer dtype of str"),
        ([object()], TypeError, "could not infer dtype of object"),
        (1 << 70, OverflowError, "64 bits"),
    ],
)
def test_bad_data(torch, data, error, text):
    with pytest.raises(error, match=text):
        torch.tensor(data)


def test_values_that_do_not_fit_the_type(torch):
    with pytest.raises(RuntimeError, match="overflow"):
        torch.tensor([300], dtype=torch.uint8)
    with pytest.raises(ValueError, match="NaN"):
        torch.tensor([float("nan")], dtype=torch.int64)


def test_tensor_copies_and_as_tensor_does_not(torch):
    x = torch.tensor([1.0, 2.0])
    y = torch.tensor(x)
    z = torch.as_tensor(x)
    x += 1
    assert y.tolist() == [1.0, 2.0]
    assert z is x
    assert torch.as_tensor(x, dtype=torch.int64).tolist() == [2, 3]


def test_filled(torch):
    assert torch.zeros(2, 3).tolist() == [[0.0] * 3] * 2
    assert torch.zeros((2,)).dtype is torch.float32
    assert torch.zeros(()).shape == ()
    assert torch.ones([2], dtype=torch.int64).tolist() == [1, 1]
    assert torch.ones(size=(2,)).tolist() == [1.0, 1.0]
    assert torch.full((2,), 7).dtype is torch.int64
    assert torch.full((2,), 7.5).tolist() == [7.5, 7.5]
    assert torch.empty(3, 4).shape == (3, 4)
    assert torch.eye(2).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert torch.eye(2, 3).shape == (2, 3)
    x = torch.zeros(2, 3, dtype=torch.float64)
    assert torch.ones_like(x).dtype is torch.float64
    assert torch.zeros_like(x, dtype=torch.int32).dtype is torch.int32
    assert torch.full_like(x, 2).tolist() == [[2.0] * 3] * 2
    assert x.new_zeros(4).dtype is torch.float64
    assert x.new_ones((1, 2)).shape == (1, 2)
    assert x.new_full((1,), 3).tolist() == [3.0]
    assert x.new_tensor([1]).dtype is torch.float64


def test_requires_grad_and_device_arguments(torch):
    for make in (torch.zeros, torch.ones, torch.rand, torch.randn, torch.empty):
        assert make(2, requires_grad=True).requires_grad
        assert make(2, device="cpu").device == torch.device("cpu")
        with pytest.raises(RuntimeError, match="cuda"):
            make(2, device="cuda")
    with pytest.raises(TypeError, match="colour"):
        torch.zeros(2, colour="red")


def test_ranges(torch):
    assert torch.arange(3).tolist() == [0, 1, 2]
    assert torch.arange(1, 4).dtype is torch.int64
    assert torch.arange(1, 2, 0.5).tolist() == [1.0, 1.5]
    assert torch.arange(5, 0, -2).tolist() == [5, 3, 1]
    assert torch.arange(3.0).dtype is torch.float32
    np.testing.assert_allclose(
        torch.linspace(-1, 1, 7).numpy(), np.linspace(-1, 1, 7), rtol=1e-6
    )
    assert torch.linspace(0, 1, 1).tolist() == [0.0]
    assert torch.linspace(0, 3, 11)[-1].item() == 3.0
    grids = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    assert [g.shape for g in grids] == [(2, 3), (2, 3)]
    assert grids[1].tolist() == [[0, 1, 2], [0, 1, 2]]


def test_random(torch):
    torch.manual_seed(3)
    first = torch.rand(1000)
    second = torch.rand(1000)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(1000), first)
    assert not torch.equal(first, second)
    values = first.numpy()
    assert 0 <= values.min() and values.max() < 1 and 0.4 < values.mean() < 0.6
    normal = torch.randn(4000).numpy()
    assert abs(normal.mean()) < 0.1 and 0.9 < normal.std() < 1.1
    dice = torch.randint(1, 7, (500,))
    assert dice.dtype is torch.int64
    assert set(dice.tolist()) == set(range(1, 7))
    assert torch.randint(3, (5,)).shape == (5,)
    assert sorted(torch.randperm(20).tolist()) == list(range(20))
    coins = torch.empty(1000).bernoulli_(0.25)
    assert 0.15 < coins.mean().item() < 0.35
    spread = torch.empty(1000).uniform_(-2, 2)
    assert -2 <= spread.min().item() < -1 and 1 < spread.max().item() < 2
    assert abs(torch.normal(5.0, 0.1, (1000,)).mean().item() - 5) < 0.1
    assert torch.rand_like(first).shape == (1000,)


def test_legacy_constructor(torch):
    assert torch.Tensor(2, 3).shape == (2, 3)
    assert torch.Tensor([1, 2]).dtype is torch.float32
    assert torch.Tensor().shape == (0,)


def test_pickle_and_deepcopy(torch):
    for x in (
        torch.rand(2, 3, requires_grad=True),
        torch.tensor(3),
        torch.zeros(0, 2, dtype=torch.bool),
        torch.arange(6).view(2, 3).t(),
    ):
        for copied in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
            assert torch.equal(copied.detach(), x.detach())
            assert copied.dtype is x.dtype
            assert copied.requires_grad is x.requires_grad
    assert pickle.loads(pickle.dumps(torch.float32)) is torch.float32
    assert pickle.loads(pickle.dumps(torch.zeros(2, 3).shape)) == (2, 3)
    x = torch.ones(2)
    x.name, x.itself = "x", x
    copied = pickle.loads(pickle.dumps(x))
    assert copied.name == "x" and copied.itself is copied
    y = torch.rand(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(y)


def test_deepcopy_keeps_shared_tensors_shared(torch):
    x = torch.ones(2)
    a, b = copy.deepcopy([x, x])
    assert a is b and a is not x


def test_frombuffer(torch):
    raw = struct.pack("<4h", 1, -2, 3, 4)
    assert torch.frombuffer(raw, dtype=torch.int16).tolist() == [1, -2, 3, 4]
    got = torch.frombuffer(bytearray(raw), dtype=torch.int16, count=2, offset=2)
    assert got.tolist() == [-2, 3] and got.dtype is torch.int16
    assert torch.frombuffer(b"", dtype=torch.float32).shape == (0,)
    for arguments, message in [
        ({"offset": 9}, "offset .9 bytes. must be"),
        ({"offset": -1}, "offset .-1 bytes. must be"),
        ({"count": 5}, "requested buffer length .10 bytes."),
        ({"offset": 1}, "multiple of element size"),
    ]:
        with pytest.raises(ValueError, match=message):
            torch.frombuffer(raw, dtype=torch.int16, **arguments)
    got = torch.frombuffer(struct.pack("<2e", 1.5, -2), dtype=torch.float16)
    assert got.tolist() == [1.5, -2] and got.dtype is torch.float16
    got = torch.frombuffer(struct.pack("<2d", 1.5, -2), dtype=torch.complex128)
    assert got.tolist() == [1.5 - 2j]
    for made in (got, torch.ones(2, dtype=torch.float16)):
        again = pickle.loads(pickle.dumps(made))
        assert again.dtype is made.dtype and again.tolist() == made.tolist()
    ones = torch.frombuffer(b"\x80\x3f" * 3, dtype=torch.bfloat16)
    assert ones.dtype is torch.bfloat16 and ones.tolist() == [1, 1, 1]


def test_of_complex_numbers(torch):
    x = torch.full((2,), 1 + 2j)
    assert x.dtype is torch.complex64 and x.tolist() == [1 + 2j] * 2
    x = torch.full(size=(1, 2), fill_value=complex(np.inf, 0), dtype=torch.complex128)
    assert x.dtype is torch.complex128 and x.tolist() == [[complex(np.inf, 0)] * 2]
    assert torch.full((), 1j, requires_grad=True).requires_grad
    assert torch.full_like(x, 1j).tolist() == [[1j, 1j]]
    with pytest.raises(TypeError, match="'fill_value' must be number, not str"):
        torch.full((2,), "1j")
    with pytest.raises(TypeError, match="layuot"):
        torch.full((2,), 1, layuot=None)
    x = torch.linspace(1j, 2, 5)
    assert x.dtype is torch.complex64
    np.testing.assert_allclose(x.numpy(), np.linspace(1j, 2, 5), rtol=1e-6)
    assert torch.linspace(0, 1j, 1, dtype=torch.complex128).tolist() == [0]
    assert torch.finfo(torch.complex128).eps == torch.finfo(torch.float64).eps
    assert torch.finfo(torch.complex64).dtype is torch.float32
