# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Training end to end: the same program over both transports, and the examples."""

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import holdfast
from holdfast import nn, optim
from holdfast.utils.data import DataLoader, TensorDataset

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DATA = Path("/usr/share/datasets/fashion-mnist")


def train(make_optimizer):
    """Weights and losses of a small network after two epochs, from seed 4."""
    holdfast.manual_seed(4)
    rng = np.random.default_rng(0)
    images = rng.standard_normal((96, 1, 12, 12)).astype("float32")
    labels = (images.mean((1, 2, 3)) > 0).astype("int64")
    dataset = TensorDataset(holdfast.tensor(images), holdfast.tensor(labels))
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.BatchNorm2d(8),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(8 * 36, 2),
    )
    optimizer = make_optimizer(model.parameters())
    criterion = nn.CrossEntropyLoss()
    losses = []
    for _ in range(8):
        for x, y in DataLoader(dataset, batch_size=32, shuffle=True):
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    state = {key: value.numpy().copy() for key, value in model.state_dict().items()}
    return state, holdfast.stack(losses).tolist()


@pytest.mark.parametrize(
    "make_optimizer",
    [
        lambda p: optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4),
        lambda p: optim.Adam(p, lr=0.005),
    ],
    ids=["SGD", "Adam"],
)
def test_transports_give_the_same_bits(daemon, make_optimizer):
    results = []
    for transport in ("shm", "grpc"):
        with holdfast.connect(daemon.address(transport), default=False) as session:
            assert session.transport == transport
            holdfast.set_default_session(session)
            results.append(train(make_optimizer))
    (one, losses), (two, other_losses) = results
    assert losses == other_losses
    assert losses[-1] < 0.5 * losses[0]
    for key in one:
        assert one[key].tobytes() == two[key].tobytes(), key


def run_example(name, *arguments):
    result = subprocess.run(
        [sys.executable, EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_linear_regression_finds_the_line():
    last = run_example("linear_regression.py").splitlines()[-1]
    slope, intercept = float(last.split()[2]), float(last.split()[5])
    assert abs(slope - 3) < 0.1 and abs(intercept - 0.5) < 0.1


needs_data = pytest.mark.skipif(
    not DATA.exists(), reason="dataset-fashion-mnist is not installed"
)


@needs_data
def test_fashion_mnist_is_the_same_over_both_transports(daemon, tmp_path):
    contents = []
    for transport in ("shm", "grpc"):
        weights = tmp_path / f"{transport}.holdfast"
        out = run_example(
            "fashion_mnist.py",
            *("--address", daemon.address(transport)),
            *("--limit", "2000", "--epochs", "2", "--save", weights),
        )
        last = out.splitlines()[-1]
        assert last.startswith("accuracy=0.") and last.endswith(transport)
        contents.append((weights.read_bytes(), last.split()[0]))
    assert contents[0] == contents[1]


@needs_data
def test_demo_survives_the_killed_client(tmp_path):
    out = run_example(
        "demo.py",
        *("--limit", "1500", "--epochs", "2", "--min-accuracy", "0.4"),
        *("--output", tmp_path),
    )
    lines = out.splitlines()
    assert any("with SIGKILL" in line for line in lines)
    assert any(line.endswith(": equal") for line in lines)
    assert lines[-1].startswith("accuracy=0.") and lines[-1].endswith("transport=shm")
    for picture in ("training_curve.png", "predictions.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    assert zipfile.ZipFile(tmp_path / "fashion_mnist.holdfast").testzip() is None


@needs_data
def test_demo_fails_below_the_wanted_accuracy(tmp_path):
    result = subprocess.run(
        [
            *(sys.executable, EXAMPLES / "demo.py", "--limit", "200"),
            *("--epochs", "1", "--min-accuracy", "0.99", "--output", tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.returncode == 1
    assert "accuracy is below 0.99" in result.stderr
