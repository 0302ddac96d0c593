# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors of 64 dimensions, as many as PyTorch has, and one more."""

import numpy
import pytest

import holdfast

MOST = 64
# Six of the dimensions have more than one element; 48 elements.
SIZES = {0: 2, 7: 3, 31: 2, 32: 2, 40: 1, 63: 2}
SHAPE = tuple(SIZES.get(d, 1) for d in range(MOST))
SMALL = tuple(size for size in SHAPE if size != 1)
ARRAY = numpy.arange(48.0, dtype=numpy.float32).reshape(SMALL)


def kept(array):
    """What NumPy, which may have fewer dimensions, has of an array."""
    return array.reshape(tuple(size for size in array.shape if size != 1))


def check(tensor, want, shape=SHAPE):
    assert tuple(tensor.shape) == shape
    assert tensor.dim() == len(shape)
    numpy.testing.assert_array_equal(
        tensor.reshape(want.shape if want.shape else ()).numpy(), want
    )


@pytest.fixture
def x(torch):
    return torch.from_numpy(ARRAY).reshape(SHAPE)


def test_views(torch, x):
    check(x, ARRAY)
    order = list(range(MOST))[::-1]
    check(x.permute(order), ARRAY.T, SHAPE[::-1])
    swapped = list(SHAPE)
    swapped[7], swapped[63] = swapped[63], swapped[7]
    check(x.transpose(7, -1), ARRAY.swapaxes(1, 4), tuple(swapped))
    check(x.squeeze(), ARRAY, SMALL)
    moved = x.squeeze(40).unsqueeze(-1)
    check(moved, ARRAY, SHAPE[:40] + SHAPE[41:] + (1,))
    expanded = x.expand(SHAPE[:40] + (5,) + SHAPE[41:])
    check(
        expanded,
        numpy.broadcast_to(ARRAY[..., None, :], SMALL[:-1] + (5, 2)),
        tuple(expanded.shape),
    )
    assert x.stride() == x.contiguous().stride()
    assert x.permute(order).contiguous().stride() == torch.ones(SHAPE[::-1]).stride()
    check(x.flatten(0, -1), ARRAY.ravel(), (48,))


def test_elementwise_and_in_place(torch, x):
    check(x + x, ARRAY + ARRAY)
    check(x.permute(list(range(MOST))[::-1]) * 2, ARRAY.T * 2, SHAPE[::-1])
    # One operand broadcasts over every dimension that the other has.
    check(x + torch.ones((2,) + (1,) * (MOST - 1)), ARRAY + 1)
    check(x.clone().permute(list(range(MOST))[::-1]).add_(1), ARRAY.T + 1, SHAPE[::-1])
    check(torch.where(x > 20, x, -x), numpy.where(ARRAY > 20, ARRAY, -ARRAY))
    check(x.to(torch.float64), ARRAY.astype("f8"))


def test_reductions(torch, x):
    assert x.sum().item() == ARRAY.sum()
    check(x.sum([0, 63]), ARRAY.sum((0, 4)), SHAPE[1:63])
    check(x.amax(-1, keepdim=True), ARRAY.max(-1), SHAPE[:-1] + (1,))
    check(x.prod(32), ARRAY.prod(3), SHAPE[:32] + SHAPE[33:])
    check(x.argmax(63), ARRAY.argmax(4), SHAPE[:63])
    check(x.sum(tuple(range(MOST))), ARRAY.sum(), ())
    check(x.cumsum(63), ARRAY.cumsum(4))
    check(x.sort(63, descending=True)[0], ARRAY[..., ::-1])
    check(x.softmax(7).sum(7), numpy.ones((2, 2, 2, 2), "f4"), SHAPE[:7] + SHAPE[8:])


def test_indexing(torch, x):
    last = (slice(None),) * (MOST - 1)
    check(x[last + (1,)], ARRAY[..., 1], SHAPE[:63])
    check(x[last + (slice(1, 2),)], ARRAY[..., 1], SHAPE[:63] + (1,))
    check(x[..., torch.tensor([1, 0])], ARRAY[..., [1, 0]])
    two = SHAPE[:7] + (2,) + SHAPE[8:]
    check(x.index_select(7, torch.tensor([2, 0])), ARRAY[:, [2, 0]], two)
    check(x.flip(0, 63), ARRAY[::-1, ..., ::-1])
    everywhere = (x > 40).nonzero()
    assert tuple(everywhere.shape) == (7, MOST)
    numpy.testing.assert_array_equal(
        everywhere.numpy()[:, [0, 7, 31, 32, 63]], numpy.argwhere(ARRAY > 40)
    )
    numpy.testing.assert_array_equal(x[x > 40].numpy(), ARRAY[ARRAY > 40])
    # An index tensor for each dimension.
    at = tuple(torch.tensor([0, size - 1]) for size in SHAPE)
    numpy.testing.assert_array_equal(x[at].numpy(), [0, 47])
    y = x.clone()
    y[at] = -1.0
    assert y.sum().item() == ARRAY.sum() - 47 - 2
    twice = numpy.concatenate([ARRAY, ARRAY], 4)
    check(torch.cat([x, x], 63), twice, SHAPE[:63] + (4,))


def test_autograd(torch, x):
    x = x.clone().requires_grad_()
    (x.permute(list(range(MOST))[::-1]).exp().sum(63) * 2).sum().backward()
    numpy.testing.assert_allclose(
        x.grad.reshape(SMALL).numpy(), 2 * numpy.exp(ARRAY), rtol=1e-5
    )
    assert tuple(x.grad.shape) == SHAPE
    y = torch.ones(1, requires_grad=True)
    y.expand(SHAPE).sum().backward()
    assert y.grad.item() == 48


def test_products(torch, x):
    check(x @ torch.ones(2, 3), (ARRAY @ numpy.ones((2, 3), "f4")), SHAPE[:63] + (3,))


def test_save_and_print(torch, x, tmp_path):
    torch.save(x, tmp_path / "x.pt")
    check(torch.load(tmp_path / "x.pt"), ARRAY)
    assert "47." in repr(x)
    nested = x.tolist()
    for _ in range(MOST):
        nested = nested[0]
    assert nested == 0
    check(torch.tensor(x.tolist()), ARRAY)


def test_numpy_has_its_own_limit(torch, x):
    most = getattr(numpy, "MAXDIMS", 64)
    if most < MOST:
        with pytest.raises(
            ValueError,
            match=rf"NumPy .* takes at most {most} dimensions. Got 64: merge some",
        ):
            x.numpy()
    else:
        numpy.testing.assert_array_equal(kept(x.numpy()), ARRAY)
    shape = (2,) + (1,) * (most - 1)
    array = numpy.ones(shape, "f4")
    numpy.testing.assert_array_equal(torch.from_numpy(array).numpy(), array)


def test_one_more_is_refused(torch, x):
    sentence = r"a tensor has at most 64 dimensions\. Got 65"
    for make in [
        lambda: torch.ones((1,) * 65),
        lambda: x.unsqueeze(0),
        lambda: x.reshape((1,) + SHAPE),
        lambda: x.expand((2,) + SHAPE),
        lambda: torch.stack([x, x]),
        lambda: x[None],
    ]:
        with pytest.raises((RuntimeError, ValueError), match=sentence) as raised:
            make()
        assert "\n" not in str(raised.value)
    nested = 0
    for _ in range(65):
        nested = [nested]
    with pytest.raises(ValueError, match=r"too many dimensions \(more than 64\)"):
        torch.tensor(nested)
    # The session is as before.
    assert x.sum().item() == ARRAY.sum()


def test_without_elements(torch):
    empty = torch.ones((0,) + (2,) * 40 + (1,) * 23)
    assert empty.dim() == 64
    assert (empty + 1).numel() == 0
    assert empty.sum().item() == 0
    assert tuple(empty.permute(list(range(64))[::-1]).clone().shape)[-1] == 0


def test_cuda_kernels_take_what_merges(cuda_sources_session):
    """Their arguments have room for 32 dimensions, after those of size 1 are gone."""
    holdfast.set_default_session(cuda_sources_session)
    x = holdfast.tensor(ARRAY).reshape(SHAPE)
    check((x.permute(list(range(MOST))[::-1]) + 1).cpu(), ARRAY.T + 1, SHAPE[::-1])
    check(x.sum([0, 63]).cpu(), ARRAY.sum((0, 4)), SHAPE[1:63])
    everywhere = (x > 40).nonzero()
    assert tuple(everywhere.shape) == (7, MOST)
    # 33 dimensions of size 2 that repeat one element.
    wide = holdfast.ones((1,) * 33).expand((2,) * 33)
    with pytest.raises(
        RuntimeError, match="on a GPU at most 32 dimensions may have another size"
    ):
        wide.gather(0, holdfast.zeros((1,) * 33, dtype=holdfast.int64)).item()
    assert x.sum().item() == ARRAY.sum()
