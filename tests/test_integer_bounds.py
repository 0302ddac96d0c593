# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What the daemon knows of integers without a look at the device's memory
(server/exec/integer_bounds.h) answers the checks of indices: such ops wait for nothing.
On the fake device with the CUDA kernels' sources, which check what is known, too, and
fail where it is wrong."""

import time

import numpy as np
import pytest

import holdfast
import holdfast.nn.functional as F
from holdfast import _stats


FAKE_GPU = {"HOLDFAST_FAKE_KERNELS": "cuda", "HOLDFAST_FAKE_LAG_US": "0"}


@pytest.fixture
def torch(gpu_session):
    holdfast.set_default_session(gpu_session)
    holdfast.manual_seed(0)
    return holdfast


def replayed():
    return _stats.parse(holdfast._C.default_session()._stats())["replayed_launches"]


# ---- what is known is true

# Each takes integer tensors x and y, and works on NumPy's arrays as well.
STEPS = [
    lambda m, x, y: x + y,
    lambda m, x, y: x - y,
    lambda m, x, y: x * 3 - 7,
    lambda m, x, y: x * y,
    lambda m, x, y: x % 5,
    lambda m, x, y: abs(x) // 4,
    lambda m, x, y: x // (abs(y) + 1),
    lambda m, x, y: 20 - x,
    lambda m, x, y: m.maximum(x, y),
    lambda m, x, y: m.minimum(x, y),
    lambda m, x, y: m.where(x > y, x, y * 2),
    lambda m, x, y: m.clip(x, -2, 9),
    lambda m, x, y: m.clip(x, 3, 3),
    lambda m, x, y: m.flip(x, (0,)),
    lambda m, x, y: m.tril(x),
    lambda m, x, y: x[:, 1:3].repeat(2, 1)
    if m is np
    else x[:, 1:3].repeat_interleave(2, 1),
    lambda m, x, y: x.T + 0,
    lambda m, x, y: m.argsort(x, 1),
    lambda m, x, y: m.concatenate([x[:2], y[2:]]),
    lambda m, x, y: m.stack([x[0], x[1], y[2], y[3]]),
    lambda m, x, y: x.astype(np.int8).astype(np.int64)
    if m is np
    else x.to(m.int8).long(),
    lambda m, x, y: x.astype(np.uint8).astype(np.int64)
    if m is np
    else x.to(m.uint8).long(),
    lambda m, x, y: (x > 0).astype(np.int64) if m is np else (x > 0).long(),
    lambda m, x, y: x.astype(np.int32).astype(np.int64) if m is np else x.int().long(),
]


def fill_corner(m, x, y):
    x[0, 0] = 11
    return x


def copy_row(m, x, y):
    x[1] = y[2]
    return x


def add_in_place(m, x, y):
    x += 2
    return x


def write_twice(m, x, y):
    x[:2] = -3
    x[2:] = y[2:]
    return x


STEPS += [fill_corner, copy_row, add_in_place, write_twice]


def stable(m, step, x, y):
    """argsort's order among equals is nobody's promise: make them differ."""
    if step is STEPS[17]:
        spread = np.arange(16).reshape(4, 4)
        x = x * 16 + (spread if m is np else m.from_numpy(spread))
    return step(m, x, y)


@pytest.mark.parametrize("seed", range(60))
def test_lookups_by_computed_integers_agree_with_numpy(torch, seed):
    """A bound that is too tight would let a bad index pass."""
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-6, 7, (4, 4)) for _ in range(2))
    ours_x, ours_y = torch.from_numpy(x.copy()), torch.from_numpy(y.copy())
    for which in rng.integers(0, len(STEPS), 6):
        x, y = stable(np, STEPS[which], x.copy(), y), x
        ours_x, ours_y = stable(torch, STEPS[which], ours_x.clone(), ours_y), ours_x
    rows = x.reshape(-1)
    if rows.max() >= 10**6 or rows.min() < -(10**6):
        return  # no table is so long
    index = ours_x.reshape(-1)
    for length in (rows.max() + 1, rows.max(), 1000):
        length = max(int(length), 1)
        table = np.arange(length) * 2.0
        ours = torch.from_numpy(table)
        if rows.min() >= 0 and rows.max() < length:
            np.testing.assert_array_equal(ours.index_select(0, index), table[rows])
        else:
            with pytest.raises(IndexError, match="out of bounds"):
                ours.index_select(0, index).numpy()
        if rows.min() >= -length and rows.max() < length:
            np.testing.assert_array_equal(ours[index], table[rows])
        else:
            with pytest.raises(IndexError, match="out of bounds"):
                ours[index].numpy()


def test_sources_of_indices(torch):
    table = torch.arange(50.0)
    x = torch.rand(6, 50)
    for index in (
        torch.randint(0, 50, (9,)),
        torch.randperm(50),
        torch.arange(49, -1, -7),
        torch.full((3,), 49),
        x.argmax(1),
        x[0].argmin(),
        x.sort(1)[1][0],
        x.topk(3)[1][2],
        torch.searchsorted(table[:-1], torch.rand(4) * 60),
        torch.nonzero(table > 3)[:, 0],
        torch.multinomial(torch.rand(50), 5),
    ):
        np.testing.assert_array_equal(table[index], index.numpy().astype(np.float32))


# ---- bad indices are still found


def test_what_is_written_later_counts(torch):
    table = torch.arange(10.0)
    index = torch.arange(10)
    assert table[index].sum() == 45
    index[3] = 12
    with pytest.raises(IndexError, match="index 12 is out of bounds"):
        table[index].numpy()
    index.data.fill_(4)
    assert table[index].sum() == 40
    index.view(2, 5)[1].copy_(torch.full((5,), -11))
    with pytest.raises(IndexError, match="index -11 is out of bounds"):
        table[index].numpy()
    index.zero_().add_(9)
    assert table[index].sum() == 90
    index.add_(1)
    with pytest.raises(IndexError, match="index 10 is out of bounds"):
        table[index].numpy()


def test_another_type_of_the_same_memory_is_not_known(torch):
    index = torch.arange(4) + (1 << 40)  # as int32: 0, 256, 1, 256, ...
    with pytest.raises(IndexError, match="index 256 is out of bounds"):
        torch.arange(9.0)[index.view(torch.int32)].numpy()
    small = torch.arange(4).view(torch.int32)
    np.testing.assert_array_equal(torch.arange(9.0)[small], [0, 0, 1, 0, 2, 0, 3, 0])


@pytest.mark.parametrize("ignored", [-100, 255, 2])
def test_targets_that_mark_what_to_ignore(torch, ignored):
    logits = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    target = np.array([1, ignored, 4, 0, ignored, 3])
    ours = F.cross_entropy(
        torch.from_numpy(logits), torch.from_numpy(target), ignore_index=ignored
    )
    kept = target != ignored
    rows = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    expected = -rows[kept, target[kept]].mean()
    np.testing.assert_allclose(ours.item(), expected, rtol=1e-5)
    for bad in (5, -1):
        wrong = torch.from_numpy(np.where(target == 4, bad, target))
        with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
            F.cross_entropy(
                torch.from_numpy(logits), wrong, ignore_index=ignored
            ).item()


def test_division_by_known_and_unknown_integers(torch):
    x = torch.arange(6)
    np.testing.assert_array_equal(x // 4, np.arange(6) // 4)
    np.testing.assert_array_equal(x % (x + 1), np.arange(6) % np.arange(1, 7))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        (x // (x - 3)).numpy()


def test_indices_go_along_to_another_gpu(torch):
    index = torch.arange(5).to("cuda:1")
    table = torch.arange(5.0, device="cuda:1")
    assert table[index].sum().item() == 10
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        table[:4][index].cpu().numpy()


def test_indices_uploaded_to_another_gpu(torch):
    table = torch.arange(5.0, device="cuda:1")
    for dtype in (np.int32, np.int64):
        index = torch.tensor(np.array([4, 0, 4], dtype), device="cuda:1")
        assert table[index].tolist() == [4, 0, 4]
        with pytest.raises(IndexError, match="index 4 is out of bounds"):
            table[:4][index].cpu().numpy()


# ---- and such ops are part of recordings


def step_of_training(torch, table, weight, tokens, targets):
    rows = F.embedding(tokens, table)
    loss = F.cross_entropy(rows @ weight, targets)
    loss.backward()
    return loss


def losses_of(torch, known, device, steps=30):
    rng = np.random.default_rng(0)

    def put(array):
        return torch.tensor(array, device=device)

    table = put(rng.normal(size=(50, 16)).astype(np.float32)).requires_grad_()
    weight = put(rng.normal(size=(16, 7)).astype(np.float32)).requires_grad_()
    tokens, targets = put(rng.integers(0, 50, 32)), put(rng.integers(0, 7, 32))
    if not known:  # what comes of floats may be anything
        tokens, targets = tokens.float().long(), targets.float().long()
    before = replayed()
    losses = []
    for _ in range(steps):
        loss = step_of_training(torch, table, weight, tokens, targets)
        losses.append(loss.item())
        table.grad = weight.grad = loss = None
    return losses, replayed() - before


@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_step_with_an_embedding_and_a_loss_is_replayed(torch, device):
    deadline = time.monotonic() + 60
    known = unknown = 0
    while known <= unknown and time.monotonic() < deadline:
        ours, known = losses_of(torch, True, device)
        theirs, unknown = losses_of(torch, False, device)
        assert ours == theirs
    assert known > unknown
