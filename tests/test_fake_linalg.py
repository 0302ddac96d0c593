# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of the CUDA kernels' sources, compiled for the host, beside the
CPU's: how matrices are laid out, batches that broadcast, and errors. On a GPU
cuSOLVER takes LAPACK's place."""

import pathlib
import sys
import time

import numpy as np
import pytest

import holdfast
from holdfast import _stats
from holdfast.daemon import Daemon

sys.path.insert(0, str(pathlib.Path(__file__).parent / "gpu"))
import linalg_cases  # noqa: E402

# Without the largest: products are plain loops here.
CASES = {
    name: (run, shapes)
    for name, run, shapes, _ in linalg_cases.cases()
    if max(shapes[0]) <= 100
}


@pytest.fixture(scope="module")
def sessions():
    """On the fake device, and on the CPU."""
    env = {"HOLDFAST_FAKE_KERNELS": "cuda"}
    with Daemon("--device=fake", env=env) as fake, Daemon() as cpu:
        with (
            holdfast.connect(fake.shm_address, default=False) as ours,
            holdfast.connect(cpu.shm_address, default=False) as theirs,
        ):
            yield ours, theirs


def on_both(sessions, run, *arrays):
    results = []
    for session in sessions:
        holdfast.set_default_session(session)
        results.append(run(*map(holdfast.from_numpy, arrays)))
    return results


@pytest.mark.parametrize("name", CASES)
def test_results_are_the_cpus(sessions, name):
    run, shapes = CASES[name]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    ours, theirs = on_both(
        sessions, lambda *tensors: run(holdfast, *tensors).detach().numpy(), *arrays
    )
    tolerance = 1e-9 if "double" in name else 2e-4
    scale = max(1, np.abs(theirs).max())
    np.testing.assert_allclose(ours / scale, theirs / scale, tolerance, tolerance)


SPD = np.stack([np.eye(4) * (i + 2) for i in range(3)])


def with_one(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


ops = holdfast._C.ops
linalg = holdfast.linalg
FAULTS = {
    "cholesky": (linalg.cholesky, with_one(SPD, (1, 2, 2), -1)),
    "cholesky, one matrix": (linalg.cholesky, with_one(SPD[0], (3, 3), 0)),
    "cholesky, large": (linalg.cholesky, with_one(np.eye(300), (250, 250), -1)),
    "solve": (lambda a: linalg.solve(a, a), with_one(SPD, 1, 0)),
    "solve broadcast": (
        lambda a: linalg.solve(a, holdfast.ones(2, 3, 4, 1, dtype=a.dtype)),
        with_one(SPD, 2, 1),
    ),
    "solve for nothing": (
        lambda a: linalg.solve(a, a[..., :0]),
        with_one(SPD, 0, 0),
    ),
    "inv": (linalg.inv, np.ones((3, 3))),
    "eigh": (linalg.eigh, with_one(SPD, (2, 0, 3), np.inf)),
    "eigvalsh": (linalg.eigvalsh, with_one(SPD, (0, 1, 1), np.nan)),
    "svd": (linalg.svd, with_one(SPD, (1, 1, 2), np.nan)),
    "svdvals": (linalg.svdvals, with_one(SPD[:, :2], (2, 1, 2), -np.inf)),
    "pinv": (linalg.pinv, with_one(SPD[:, :, :3], (0, 3, 1), np.nan)),
    "eig": (linalg.eig, with_one(SPD, (1, 3, 0), np.inf)),
    "a pivot that is none": (
        lambda p: ops.linalg_lu_permutation(p, 4),
        np.array([[1, 2], [2, 5]], np.int32),
    ),
    "a pivot of 0": (
        lambda p: ops.linalg_lu_permutation(p, 4),
        np.array([0, 2], np.int32),
    ),
}


def complaint(call, tensor):
    with pytest.raises(RuntimeError) as raised:
        result = call(tensor)
        first = result[0] if isinstance(result, tuple) else result
        first.numpy()
    return str(raised.value).split(" (op #")[0]


@pytest.mark.parametrize("name", FAULTS)
def test_errors_are_the_cpus(sessions, name):
    call, array = FAULTS[name]
    ours, theirs = on_both(sessions, lambda x: complaint(call, x), array)
    assert ours == theirs


def test_exponentials_of_every_size(sessions):
    """Each matrix of a batch as by itself, whatever the others' norms."""
    rng = np.random.default_rng(1)
    sizes = np.array([0, 1e-9, 1e-2, 0.2, 0.9, 2, 5, 40, np.inf, np.nan])
    array = rng.standard_normal((len(sizes), 5, 5))
    array *= (sizes / np.abs(array).sum(-1).max(-1))[:, None, None]
    for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-3)):
        ours, theirs = on_both(
            sessions, lambda x: linalg.matrix_exp(x).numpy(), array.astype(dtype)
        )
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
        np.testing.assert_allclose(ours[:-2], theirs[:-2], tolerance, tolerance)
        for i in range(len(sizes)):
            alone, _ = on_both(
                sessions,
                lambda x: linalg.matrix_exp(x).numpy(),
                array[i].astype(dtype),
            )
            np.testing.assert_allclose(ours[i], alone, tolerance, tolerance)


COMPLEX = {
    "solve": lambda a, b: linalg.solve(a, b),
    "solve transposed": lambda a, b: linalg.solve(a.mT, b),
    "lu_factor": lambda a, b: linalg.lu_factor(a)[0],
    "solve_triangular": lambda a, b: linalg.solve_triangular(a, b, upper=True),
    "solve_triangular, rows": lambda a, b: linalg.solve_triangular(
        a.mT, b.mT, upper=False, left=False
    ),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_matrices(sessions, name):
    rng = np.random.default_rng(2)
    a = rng.standard_normal((3, 4, 4)) + 1j * rng.standard_normal((3, 4, 4))
    b = rng.standard_normal((4, 2)) + 1j * rng.standard_normal((4, 2))
    for dtype, tolerance in ((np.complex128, 1e-10), (np.complex64, 1e-3)):
        ours, theirs = on_both(
            sessions,
            lambda *x: COMPLEX[name](*x).numpy(),
            a.astype(dtype),
            b.astype(dtype),
        )
        np.testing.assert_allclose(ours, theirs, tolerance, tolerance)


def test_eigenvectors_of_pairs(sessions):
    """Real and complex eigenvalues side by side."""
    blocks = np.zeros((2, 5, 5))
    blocks[0, :2, :2] = [[1, 2], [-2, 1]]
    blocks[0, 2, 2] = 4
    blocks[0, 3:, 3:] = [[0, 1], [-3, 0]]
    blocks[1] = np.diag([3.0, 1, 4, 1.5, 9])
    rotated = blocks + 0.01 * np.random.default_rng(3).standard_normal(blocks.shape)

    def run(a):
        values, vectors = linalg.eig(a)
        return values.numpy(), vectors.numpy()

    ours, theirs = on_both(sessions, run, rotated)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, 1e-10, 1e-10)
    values, vectors = ours
    np.testing.assert_allclose(
        rotated @ vectors, vectors * values[:, None, :], 1e-10, 1e-10
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_floats(sessions, dtype):
    array = np.eye(5) * 3 + np.random.default_rng(4).uniform(-1, 1, (5, 5))
    kind = getattr(holdfast, dtype)
    ours, theirs = on_both(
        sessions,
        lambda x: linalg.solve(x.to(kind), x.mT.to(kind)).float().numpy(),
        array,
    )
    np.testing.assert_allclose(ours, theirs, 0.01, 0.01)


def around_a_factorisation(a):
    """Steps of one factorisation and many small ops."""
    results = []
    for _ in range(12):
        q, r = linalg.qr(a)
        x = q @ r
        for _ in range(9):
            x = (x * 0.5).sin() + a
        results.append(x.sum().item())
    return results


def replayed(session):
    return _stats.parse(session._stats())["replayed_launches"]


def test_factorisations_in_recurring_sequences(sessions):
    """They ask the host under way, and so are no parts of recordings; what is
    between them is."""
    array = np.random.default_rng(5).standard_normal((6, 6)).astype(np.float32)
    before = replayed(sessions[0])
    deadline = time.monotonic() + 60
    while True:
        ours, theirs = on_both(sessions, around_a_factorisation, array)
        np.testing.assert_allclose(ours, theirs, 1e-4)
        if replayed(sessions[0]) > before or time.monotonic() > deadline:
            break
    assert replayed(sessions[0]) > before
