# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors and other libraries: arrays in place, DLPack, Pillow, matplotlib, copies."""

import array
import copy
import gc
import pickle

import numpy as np
import pytest

import holdfast
from holdfast import nn

DTYPES = "uint8 int8 int16 int32 int64 float16 float32 float64 complex64".split()


# ---- arrays that must show what the other side writes


def test_an_array_shows_an_in_place_add(torch):
    """As in PyTorch's first tutorial, both ways."""
    a = np.ones(5)
    t = torch.from_numpy(a)
    np.add(a, 1, out=a)
    assert t.tolist() == [2, 2, 2, 2, 2]
    t.add_(1)
    assert a.tolist() == [3, 3, 3, 3, 3]
    t[1:3] = 7
    assert a.tolist() == [3, 7, 7, 3, 3]
    a[0] = -1
    assert (t * 2).sum().item() == 2 * a.sum()


def test_views_on_either_side(torch):
    a = np.arange(6.0).reshape(2, 3)
    t = torch.from_numpy(a[1])
    a += 10
    assert t.tolist() == [13, 14, 15]
    t.view(3, 1)[0] = 0
    t.detach().mul_(2)
    assert a.tolist() == [[10, 11, 12], [0, 28, 30]]
    same = torch.as_tensor(a)
    same.t()[0] = 5
    assert a[:, 0].tolist() == [5, 5] and t[0].item() == 5


def test_mutating_ops_and_optimizers(torch):
    a = np.ones(3, "float32")
    weight = nn.Parameter(torch.from_numpy(a))
    (weight * 2).sum().backward()
    torch.optim.SGD([weight], lr=0.5).step()
    assert a.tolist() == [0, 0, 0]
    out = np.zeros(3, "float32")
    torch.add(torch.ones(3), 1, out=torch.from_numpy(out))
    assert out.tolist() == [2, 2, 2]


def test_the_programs_writes_are_not_counted(torch):
    state = np.ones(3, "float32")
    x = torch.from_numpy(state)
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * x).sum()
    state += 1  # the next step of an environment, before backward
    (weight * x).sum().item()
    loss.backward()
    assert weight.grad.tolist() == [2, 2, 2]  # as PyTorch has it


def test_a_copy_is_a_copy(torch):
    a = np.ones(3)
    for t in (torch.tensor(a), torch.from_numpy(a).clone(), torch.from_numpy(a) + 0):
        a += 1
        t.add_(10)
    assert a.tolist() == [4, 4, 4]


def test_mirrors_end_with_their_arrays(torch):
    a = np.ones(1000)
    t = torch.from_numpy(a)
    view = t[3:]
    a[3] = 5
    del a
    gc.collect()
    # The last that the program wrote nobody could see; the tensor goes on.
    t.add_(1)
    assert view[1].item() == 2
    held = np.ones(1000)
    before = torch.memory_allocated()
    for _ in range(10):
        torch.from_numpy(held).sum().item()
    assert torch.memory_allocated() == before


def test_frozen_and_odd_arrays(torch):
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert torch.from_numpy(frozen).tolist() == [1, 1, 1]
    strided = torch.from_numpy(np.arange(10)[::3])
    assert strided.tolist() == [0, 3, 6, 9]


# ---- protocols


@pytest.mark.parametrize("dtype", DTYPES)
def test_array_interface(torch, transport, dtype):
    x = (torch.arange(24) % 7).reshape(2, 3, 4).to(getattr(torch, dtype))
    for t in (
        x,
        x.permute(2, 0, 1),
        x[1:, ::2],
        x[0, 0, 1],
        x[:0],
        x[0].expand(5, 3, 4),
    ):
        seen = np.array(t, copy=False)
        np.testing.assert_array_equal(seen, t.numpy())
        assert seen.dtype == t.numpy().dtype
    view = np.asarray(x.permute(2, 0, 1)[1])
    x.zero_()
    assert not view.any()  # over gRPC, too, an array follows its tensor


def test_array_interface_refuses_what_numpy_cannot(torch):
    with pytest.raises(RuntimeError, match=r"detach\(\).numpy\(\)"):
        np.asarray(torch.ones(1, requires_grad=True))
    with pytest.raises(TypeError, match="bfloat16"):
        np.asarray(torch.ones(1).bfloat16())
    assert torch.arange(3).tobytes() == np.arange(3).tobytes()


def test_array_with_dtype_and_copy(torch, transport):
    x = torch.arange(3.0)
    assert np.asarray(x, dtype="int64").dtype == np.int64
    assert x.__array__("float64").dtype == np.float64
    x.__array__(copy=True)[0] = 9
    assert x[0].item() == 0
    with pytest.raises(ValueError, match="without a copy"):
        x.__array__("int64", copy=False)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_with_numpy(torch, transport, dtype):
    x = torch.arange(12).reshape(3, 4).to(getattr(torch, dtype))
    for t in (x, x.t(), x[1:, ::2]):
        seen = np.from_dlpack(t)
        np.testing.assert_array_equal(seen, t.numpy())
    back = torch.from_dlpack(np.asarray(x.t()))
    assert back.dtype is x.dtype and torch.equal(back, x.t())
    assert torch.equal(torch.utils.dlpack.from_dlpack(torch.to_dlpack(x)), x)
    seen = np.from_dlpack(x)
    x.zero_()
    assert not seen.any()


def test_dlpack_with_pytorch(torch):
    peer = pytest.importorskip("torch")
    x = torch.randn(3, 4)
    seen = peer.from_dlpack(x.t())
    np.testing.assert_array_equal(seen.numpy(), x.t().numpy())
    theirs = peer.randn(3, 4).t()
    np.testing.assert_array_equal(torch.from_dlpack(theirs).numpy(), theirs.numpy())
    capsule = peer.utils.dlpack.to_dlpack(theirs)
    assert torch.utils.dlpack.from_dlpack(capsule).shape == (4, 3)
    assert x.__dlpack_device__() == (1, 0)


def test_dlpack_refusals(torch):
    with pytest.raises(RuntimeError, match="require gradient"):
        torch.ones(1, requires_grad=True).__dlpack__()
    with pytest.raises(TypeError, match="__dlpack__ or a capsule"):
        torch.from_dlpack([1])
    x = torch.ones(2)
    y = torch.from_dlpack(x)
    y.add_(1)
    assert x.tolist() == [2, 2]


def test_buffers_become_tensors(torch):
    assert torch.tensor(array.array("d", [1, 2])).tolist() == [1, 2]
    assert torch.frombuffer(bytearray(8), dtype=torch.float32).tolist() == [0, 0]
    half = torch.ones(4).bfloat16()
    again = torch.frombuffer(half.tobytes(), dtype=torch.bfloat16)
    assert torch.equal(again, half)


# ---- libraries


def test_pillow(torch):
    image = pytest.importorskip("PIL.Image")
    gray = (torch.arange(12) * 20).reshape(3, 4).to(torch.uint8)
    assert list(image.fromarray(gray).getdata()) == gray.flatten().tolist()
    color = torch.randint(0, 255, (3, 5, 7)).to(torch.uint8)
    shown = image.fromarray(color.permute(1, 2, 0))
    assert shown.size == (7, 5)
    assert torch.equal(torch.as_tensor(np.array(shown)).permute(2, 0, 1), color)
    assert torch.equal(torch.tensor(np.asarray(shown)), color.permute(1, 2, 0))


def test_matplotlib(torch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    x = torch.linspace(0, 1, 20)
    figure, axes = pyplot.subplots()
    (line,) = axes.plot(x, x**2)
    np.testing.assert_allclose(line.get_ydata(), (x**2).numpy())
    axes.scatter(x, x.sqrt(), c=x)
    axes.hist(torch.randn(50))
    axes.imshow(torch.rand(4, 5))
    axes.bar(torch.arange(3), torch.ones(3))
    axes.fill_between(x, x, x + 1)
    figure.canvas.draw()
    pyplot.close(figure)


def test_scipy_and_numpy_functions(torch):
    stats = pytest.importorskip("scipy.stats")
    x = torch.tensor([1.0, 2.0, 3.0])
    assert stats.zscore(np.asarray(x)).shape == (3,)
    assert np.mean(np.asarray(x)) == 2 and np.dot(x, x) == 14
    assert np.concatenate([x, x]).shape == (6,)
    assert np.allclose(x, [1, 2, 3])


def test_scikit_learn(torch):
    linear_model = pytest.importorskip("sklearn.linear_model")
    x = torch.randn(50, 3)
    y = x @ torch.tensor([1.0, -2.0, 0.5])
    model = linear_model.LinearRegression().fit(x, y)
    np.testing.assert_allclose(model.coef_, [1, -2, 0.5], atol=1e-4)
    np.testing.assert_allclose(model.predict(x), y.numpy(), atol=1e-4)
    cluster = pytest.importorskip("sklearn.cluster")
    assert cluster.KMeans(2, n_init=1).fit(x).labels_.shape == (50,)


def test_pandas(torch):
    pandas = pytest.importorskip("pandas")
    x = torch.arange(6.0).reshape(3, 2)
    frame = pandas.DataFrame(x.numpy(), columns=["a", "b"])
    frame["c"] = x[:, 0]
    assert frame["c"].tolist() == [0, 2, 4]
    assert pandas.Series(x[:, 1]).tolist() == [1, 3, 5]
    assert torch.tensor(frame.values).shape == (3, 3)


# ---- copies


def test_copies_and_plain_pickles(torch):
    base = torch.arange(4.0)
    weight = nn.Parameter(torch.ones(2))
    weight.sum().backward()
    for make in (copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))):
        twin, again, other = make([base, base, weight])
        assert twin is again and twin is not base and torch.equal(twin, base)
        twin.add_(1)
        assert base[0].item() == 0
        assert type(other) is nn.Parameter and other.requires_grad
    alias = copy.copy(base)
    alias.add_(1)
    assert base.tolist() == [1, 2, 3, 4]
    half = torch.ones(3).bfloat16()
    assert torch.equal(pickle.loads(pickle.dumps(half)), half)
    model = nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 3))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert all(
            map(torch.equal, model.state_dict().values(), twin.state_dict().values())
        )
    assert holdfast.equal(copy.copy(weight), weight)
