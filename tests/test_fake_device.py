# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The daemon on an asynchronous device (server/fake_device) that runs the CUDA
kernels' sources, compiled for the host: every op case, 16-bit floats, and programs
that read, write and free under way."""

import subprocess

import numpy as np
import pytest
from all_op_cases import CASES

import holdfast
from holdfast.daemon import Daemon, find_daemon

CUDA_SOURCES = {"HOLDFAST_FAKE_KERNELS": "cuda"}
FORWARD = [pytest.param(c, id=c.name) for c in CASES if not c.random]


@pytest.fixture(scope="module")
def fake_daemon():
    with Daemon("--device=fake", env=CUDA_SOURCES) as running:
        yield running


@pytest.fixture(scope="module", params=["shm", "grpc"])
def fake(request, fake_daemon):
    address = fake_daemon.address(request.param)
    with holdfast.connect(address, default=False) as session:
        yield session


@pytest.fixture
def torch(fake):
    """The package, connected to the fake device."""
    holdfast.set_default_session(fake)
    holdfast.manual_seed(0)
    return holdfast


@pytest.fixture(scope="module")
def local_session(fake_daemon):
    with holdfast.connect(fake_daemon.shm_address, default=False) as session:
        yield session


@pytest.fixture
def local(local_session):
    """The same, over shared memory alone."""
    holdfast.set_default_session(local_session)
    holdfast.manual_seed(0)
    return holdfast


def single(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.parametrize("case", FORWARD)
def test_forward(local, case):
    arrays = case.arrays()
    with np.errstate(all="ignore"):
        expected = np.asarray(case.reference(*arrays))
    precisions = [(np.float64, 1e-10), (np.float32, 1e-4)]
    if not any(a.dtype == np.float64 for a in arrays):
        precisions = precisions[1:]
    for dtype, tolerance in precisions:
        cast = [a.astype(dtype) if a.dtype == np.float64 else a for a in arrays]
        tensors = [local.from_numpy(np.array(a, order="C")) for a in cast]
        got = single(case.ours(local, *tensors)).detach().numpy()
        assert got.shape == expected.shape
        if expected.dtype.kind in "bi" and case.op in ("floor_divide", "to"):
            continue  # truncation differs by rounding
        np.testing.assert_allclose(got, expected, tolerance, tolerance)


@pytest.mark.parametrize("case", [c for c in CASES if c.random], ids=lambda c: c.op)
def test_random_numbers_are_the_cpus(torch, case, daemon):
    torch.manual_seed(11)
    ours = single(case.ours(torch)).numpy()
    with holdfast.connect(daemon.shm_address, default=False) as cpu:
        holdfast.set_default_session(cpu)
        torch.manual_seed(11)
        expected = single(case.ours(torch)).numpy()
        if expected.dtype.kind == "f":
            np.testing.assert_allclose(ours, expected, 1e-5, 1e-6)
        else:
            np.testing.assert_array_equal(ours, expected)


def sums_at_places(torch):
    """Results whose terms meet at places that data names, and their gradients."""
    rng = np.random.default_rng(5)
    source = torch.from_numpy(rng.standard_normal((40, 6)).astype(np.float32))
    rows = torch.from_numpy(rng.integers(0, 5, 40))
    places = torch.from_numpy(rng.integers(0, 5, (40, 6)))
    planes = source.reshape(2, 2, 10, 6).requires_grad_()
    torch.nn.functional.max_pool2d(planes, 3, 1).sin().sum().backward()
    resampled = source.reshape(2, 2, 10, 6).requires_grad_()
    grid = torch.from_numpy(rng.uniform(-1, 1, (2, 9, 9, 2)).astype(np.float32))
    torch.nn.functional.grid_sample(
        resampled, grid, align_corners=False
    ).sin().sum().backward()
    zeros = torch.zeros(5, 6)
    pairs = (rows, places[:, 0])
    return [
        zeros.index_add(0, rows, source),
        zeros.scatter_add(0, places, source),
        zeros.t().contiguous().scatter_add(1, places.t(), source.t()),
        zeros.scatter_reduce(0, places, source, "prod"),
        zeros.scatter_reduce(0, places, source, "mean"),
        zeros.index_put(pairs, source[:, 0], accumulate=True),
        torch.zeros(3, 5, 2).index_put(
            (torch.arange(3)[:, None], rows[None, :]),
            source[:3, :2, None].expand(3, 2, 20).permute(0, 2, 1).repeat(1, 2, 1),
            accumulate=True,
        ),
        torch.bincount(rows, source[:, 0]),
        torch.histogram(source[:, 0], 4, weight=source[:, 1])[0],
        planes.grad,
        resampled.grad,
    ]


def test_sums_in_order_are_the_sums(torch, daemon):
    switch = torch.use_deterministic_algorithms
    switch(True)
    try:
        ours = [x.numpy() for x in sums_at_places(torch)]
        again = [x.numpy() for x in sums_at_places(torch)]
    finally:
        switch(False)
    with holdfast.connect(daemon.shm_address, default=False) as cpu:
        holdfast.set_default_session(cpu)
        expected = [x.numpy() for x in sums_at_places(torch)]
    for mine, repeated, theirs in zip(ours, again, expected, strict=True):
        assert mine.tobytes() == repeated.tobytes()
        np.testing.assert_allclose(mine, theirs, 1e-4, 1e-5)


def test_of_equal_places_the_last_stays(torch):
    torch.use_deterministic_algorithms(True)
    try:
        x = torch.zeros(3).scatter(0, torch.tensor([1, 2, 1]), torch.arange(3.0))
        y = torch.zeros(3, 2)
        y[torch.tensor([0, 2, 0])] = torch.arange(6.0).reshape(3, 2)
        assert x.tolist() == [0, 2, 1] and y.tolist() == [[4, 5], [0, 0], [2, 3]]
    finally:
        torch.use_deterministic_algorithms(False)


def test_what_the_device_tells_of_itself(torch):
    from holdfast.cuda import devices

    told, limit = devices._ask(0)
    assert told == {
        "name": "fake device",
        "index": 0,
        "major": 1,
        "minor": 2,
        "multi_processors": 3,
        "total_bytes": 5 << 40,
        "free_bytes": 4 << 40,
    }
    assert devices.properties_of(told, limit).total_memory <= 5 << 40


def test_sessions_that_share_memory_wait_for_each_other(fake_daemon):
    _C = holdfast._C
    with (
        holdfast.connect(fake_daemon.shm_address, default=False) as one,
        holdfast.connect(fake_daemon.grpc_address, default=False) as other,
    ):

        def after_a_while():
            factor = holdfast.rand(500, 500)
            return (factor @ factor @ factor @ factor).sum() * 0 + 1

        holdfast.set_default_session(one)
        x = holdfast.zeros(3)
        x += after_a_while()
        token = _C.share(x, True)
        holdfast.set_default_session(other)
        y = _C.open_shared(token, x.dtype, (3,), (1,), 0, True)
        assert y.tolist() == [1, 1, 1]  # a read
        for session, mine, theirs in ((other, y, x), (one, x, y)):
            holdfast.set_default_session(session)
            before = theirs.tolist()[0]
            mine += after_a_while()
            _C.share(mine, False)  # an answer: it is launched, and not done
            doubled = theirs * 2  # an op
            assert doubled.tolist() == [2 * (before + 1)] * 3
        # Whoever ends first leaves what it has begun.
        x += after_a_while()
        _C.share(x, False)
        one.close()
        assert y.tolist() == [4, 4, 4]


def train(torch):
    torch.manual_seed(3)
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.randn(32, 8)
    y = torch.arange(32) % 4
    losses = []
    for _ in range(20):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [loss.item() for loss in losses]


def test_training_goes_as_on_the_cpu(torch, daemon):
    ours = train(torch)
    with holdfast.connect(daemon.shm_address, default=False) as cpu:
        holdfast.set_default_session(cpu)
        np.testing.assert_allclose(ours, train(torch), 1e-4)


def alignments(torch):
    """Losses and gradients of connectionist temporal classification: repeated
    labels, labels that are blanks, samples that cannot be aligned."""
    rng = np.random.default_rng(0)
    results = []
    for steps, batch, classes, longest, blank in (
        (12, 3, 5, 4, 0),
        (30, 4, 6, 9, 2),
        (5, 2, 3, 4, 0),
    ):
        x = torch.tensor(rng.normal(size=(steps, batch, classes)), requires_grad=True)
        loss = torch.nn.functional.ctc_loss(
            x.log_softmax(-1),
            torch.tensor(rng.integers(0, classes, (batch, longest))),
            torch.tensor(rng.integers(steps // 2, steps + 1, batch)),
            torch.tensor(rng.integers(0, longest + 1, batch)),
            blank=blank,
            reduction="none",
            zero_infinity=True,
        )
        loss.sum().backward()
        results += [loss.detach().numpy(), x.grad.numpy()]
    return results


def test_ctc_loss_and_its_gradient_are_the_cpus(torch, daemon):
    ours = alignments(torch)
    with holdfast.connect(daemon.shm_address, default=False) as cpu:
        holdfast.set_default_session(cpu)
        for result, expected in zip(ours, alignments(torch)):
            np.testing.assert_allclose(result, expected, 1e-10, 1e-12)


def gated(torch, x, w):
    """A chain of elementwise ops and its gradients, step by step."""
    results = []
    for _ in range(8):
        y = (x * w).sigmoid()
        loss = ((1 - y) * (x + w).tanh()).relu().sum()
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        results.append((loss.item(), w.detach().numpy().copy(), w.grad.numpy()))
        w.grad = None
    return results


@pytest.fixture(scope="module")
def one_by_one():
    """A daemon that launches each op by itself."""
    with Daemon("--device=fake", "--graphs=off", env=CUDA_SOURCES) as running:
        yield running


def test_recorded_steps_have_the_bits_of_launches(torch, one_by_one):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((37, 11)).astype(np.float32)
    b = rng.standard_normal((37, 11)).astype(np.float32)

    def run():
        w = torch.from_numpy(b.copy()).requires_grad_()  # written to
        return gated(torch, torch.from_numpy(a), w)

    recorded = run()
    with holdfast.connect(one_by_one.shm_address, default=False) as session:
        holdfast.set_default_session(session)
        plain = run()
    for ours, theirs in zip(recorded, plain, strict=True):
        for x, y in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "op",
    [
        lambda t, x: x.exp(),
        lambda t, x: x + x.t(),
        lambda t, x: x.sum(0),
        lambda t, x: x.softmax(1),
        lambda t, x: x @ x.t(),
        lambda t, x: x.max(1)[0],
        lambda t, x: x.cumsum(1),
        lambda t, x: t.nn.functional.gelu(x),
        lambda t, x: t.nn.functional.layer_norm(x, (65,)),
        lambda t, x: x[x > 0].sum(),
    ],
)
def test_16_bit_floats(torch, dtype, op):
    array = np.random.default_rng(0).standard_normal((65, 65)).astype(np.float32)
    kind = getattr(torch, dtype)
    x = torch.from_numpy(array).to(kind)
    got = op(torch, x)
    assert got.dtype == kind
    expected = op(torch, x.float()).to(kind).float().numpy()
    np.testing.assert_allclose(got.float().numpy(), expected, 0.02, 0.02)


def test_arrays_are_copies(torch):
    array = np.arange(100_000, dtype=np.float32)
    x = torch.from_numpy(array)
    y = x * 2
    before = y.numpy()
    y.add_(1)
    np.testing.assert_array_equal(before, array * 2)
    np.testing.assert_array_equal(y.numpy(), array * 2 + 1)
    np.testing.assert_array_equal(y[::7].numpy(), (array * 2 + 1)[::7])


def test_large_uploads_in_a_row(torch):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(300_000) for _ in range(20)]
    tensors = [torch.from_numpy(a) for a in arrays]
    for a, t in zip(arrays, tensors):
        np.testing.assert_array_equal(t.numpy(), a)


def test_saved_tensors_leave_the_device(torch):
    def gradient(dtype):
        x = torch.arange(100_000).to(dtype).div(1e5).requires_grad_()
        y = x
        before = torch.cuda.memory_allocated()
        for _ in range(9):
            y = y.exp().log1p()
        saved = torch.cuda.memory_allocated() - before
        y.sum().backward()
        return saved, x.grad.float().numpy()

    graph = torch.autograd.graph
    offload = graph.save_on_cpu()  # does nothing here: the device says "cpu"
    for dtype in (torch.float32, torch.bfloat16):
        saved, plain = gradient(dtype)
        with graph.saved_tensors_hooks(offload.pack_hook, offload.unpack_hook):
            less, offloaded = gradient(dtype)
        np.testing.assert_array_equal(offloaded, plain)
        assert less < saved / 3


def test_a_bad_index_is_an_error_of_its_op(torch):
    x = torch.zeros(3)
    bad = x[torch.tensor([0, 5])]
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        (bad + 1).numpy()
    x.index_add_(0, torch.tensor([7]), torch.ones(1))
    with pytest.raises(IndexError, match="index 7"):
        x.numpy()
    np.testing.assert_array_equal(x.numpy(), np.zeros(3))


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--device=nothing"], "libholdfast_nothing.so"),
        (["--device=fake:3"], "there are 3 fake devices, counted from 0. Got 3"),
        (["--device=gpu!"], "--device must be"),
        (["--device=fake", "--graphs=no"], "--graphs must be on or off. Got 'no'"),
        (["--device=fake", "--fusion=0"], "--fusion must be on or off. Got '0'"),
        (["--device=cuda", "--device_library=/nowhere.so"], "/nowhere.so"),
    ],
)
def test_a_device_that_is_not_there_ends_the_daemon(flags, message, tmp_path):
    result = subprocess.run(
        [find_daemon(), f"--socket={tmp_path}/d.sock", *flags],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    assert message in result.stderr
