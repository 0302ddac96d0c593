# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Every op case as a recurring sequence of launches: what recordings and fused chains
compute has the bits of plain launches. On the fake device, with the CUDA kernels'
sources compiled for the host. HOLDFAST_TEST_RECORDED_CASES=all takes every case and
its gradients, some minutes' work; without it, one in twenty."""

import os
import re
import time

import numpy as np
import pytest
from all_op_cases import CASES

import holdfast
from holdfast import _stats
from holdfast.daemon import Daemon

# Calls of a step: enough for a sequence (server/replay/launch_replay.h). Steps: enough
# for addresses to recur, a sequence to be launched plainly twice, recorded, replayed.
CALLS = 9
STEPS = 6

LONG = re.compile(r"\d{4}")
ALL = os.environ.get("HOLDFAST_TEST_RECORDED_CASES") == "all"
CHOSEN = [c for c in CASES if not c.random][:: 1 if ALL else 20]
CHOSEN += [c for c in CASES if c.random]
# On the host a long transform is the sum that defines it, and takes a minute here.
CHOSEN = [c for c in CHOSEN if not (c.op.startswith("fft") and LONG.search(c.name))]
FORWARD = [pytest.param(c, id=c.name) for c in CHOSEN]
GRADIENTS = [pytest.param(c, id=c.name) for c in CHOSEN if c.grad]


def connect_to(*flags):
    env = {"HOLDFAST_FAKE_KERNELS": "cuda", "HOLDFAST_FAKE_LAG_US": "0"}
    with Daemon("--device=fake", *flags, env=env) as running:
        with holdfast.connect(running.shm_address, default=False) as session:
            yield session


@pytest.fixture(scope="module")
def recording():
    yield from connect_to()


@pytest.fixture(scope="module")
def plain():
    yield from connect_to("--graphs=off")


def upload(case):
    arrays = (a.astype(np.float32) if a.dtype == float else a for a in case.arrays())
    return [holdfast.from_numpy(np.array(a, order="C")) for a in arrays]


def values(result):
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return [p.detach().numpy() for p in parts if isinstance(p, holdfast.Tensor)]


def repeated(session, case, call):
    """The results of the last step's calls."""
    holdfast.set_default_session(session)
    holdfast.manual_seed(0)
    tensors = upload(case)
    for step in range(STEPS):
        results = [call(case, tensors) for _ in range(CALLS)]
        if step < STEPS - 1:
            results = None  # its memory is the next step's
            session.synchronize()
    return [values(result) for result in results]


def bits(x):
    """All NaNs are one: compilers choose their sign."""
    parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
    if x.dtype.kind not in "fc":
        return x.tobytes()
    return [np.where(np.isnan(part), np.nan, part).tobytes() for part in parts]


def equal_bits(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        for x, y in zip(mine, other, strict=True):
            assert x.dtype == y.dtype and x.shape == y.shape
            assert bits(x) == bits(y)


def forward(case, tensors):
    return case.ours(holdfast, *tensors)


def gradient(case, tensors):
    copies = [t.clone() for t in tensors]
    for i in case.grad:
        copies[i].requires_grad_()
    result = case.ours(holdfast, *copies)
    part = result[0] if isinstance(result, (tuple, list)) else result
    part.sum().backward()
    return [copies[i].grad for i in case.grad]


@pytest.mark.parametrize("case", FORWARD)
def test_forward_has_the_bits_of_launches(recording, plain, case):
    equal_bits(repeated(recording, case, forward), repeated(plain, case, forward))


if ALL:

    @pytest.mark.parametrize("case", GRADIENTS)
    def test_gradients_have_the_bits_of_launches(recording, plain, case):
        equal_bits(repeated(recording, case, gradient), repeated(plain, case, gradient))


def drawn(session, reseed_at):
    """What steps of a program with random numbers in it draw: each other ones. In
    step `reseed_at` the seed is set between its ops."""
    holdfast.set_default_session(session)
    holdfast.manual_seed(1)
    x = holdfast.ones(33)
    steps = []
    for step in range(24):
        y = holdfast.nn.functional.dropout(x, 0.25) + holdfast.rand(33)
        for k in range(4):
            y = y * 1.5 + x
            if step == reseed_at and k == 2:
                holdfast.manual_seed(7)
        noise = holdfast.empty(33, dtype=holdfast.float64).normal_()
        order = holdfast.randperm(33)
        y = (holdfast.nn.functional.dropout(y, 0.5) + holdfast.randn(33)).exp()
        # Copies: arrays of ours keep their tensors' memory.
        steps.append([t.numpy().copy() for t in (y, noise, order)])
        del y, noise, order
    return steps


def test_recordings_draw_other_numbers_each_time(recording, plain):
    reseeded = drawn(plain, 13)
    assert len({step[0].tobytes() for step in reseeded}) == 24
    deadline, before = time.monotonic() + 60, counts(recording)[0]
    while True:
        for reseed_at in (13, 24):
            equal_bits(drawn(recording, reseed_at), drawn(plain, reseed_at))
        # Most of some run's launches, or those with draws would not be among them.
        replayed, before = counts(recording)[0] - before, counts(recording)[0]
        if replayed > 24 * 10 or time.monotonic() > deadline:
            break
    assert replayed > 24 * 10


def counts(session):
    stats = _stats.parse(session._stats())
    return stats["replayed_launches"], stats["fused_launches"]


def test_recordings_and_chains_took_part(recording, plain):
    """How many a busy machine lets begin in time differs from run to run."""
    chain = next(c for c in CASES if c.op == "exp")
    deadline = time.monotonic() + 60
    while min(counts(recording)) == 0 and time.monotonic() < deadline:
        equal_bits(repeated(recording, chain, forward), repeated(plain, chain, forward))
    assert min(counts(recording)) > 0
    assert counts(plain) == (0, 0)


def test_layers_of_the_devices_sizes_are_replayed(recording, plain):
    """Nothing but recurrent layers, whose reserve's size only the device knows."""
    case = next(c for c in CASES if c.op == "rnn_layer" and "lstm" in c.name)

    def layer(case, tensors):
        x, *state_and_weights = tensors
        h, w_ih, w_hh, b_ih, b_hh, c = state_and_weights
        return holdfast._C.ops.rnn_layer(
            x, None, h, c, w_ih, w_hh, b_ih, b_hh, "lstm", False, True
        )

    before = now = counts(recording)[0]
    deadline = time.monotonic() + 60
    while now == before and time.monotonic() < deadline:
        equal_bits(repeated(recording, case, layer), repeated(plain, case, layer))
        now = counts(recording)[0]
    assert now > before
