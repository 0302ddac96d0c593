# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""save and load of more than containers: modules, optimizers, classes, NumPy's."""

import argparse
import datetime
import pathlib
import subprocess
import sys
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest

import holdfast
from holdfast import nn, optim
from holdfast.serialization import (
    UnsafeError,
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


def round_trip(value, tmp_path):
    holdfast.save(value, tmp_path / "value.pt")
    return holdfast.load(tmp_path / "value.pt")


class Settings:
    def __init__(self):
        self.rate = 0.1


class Custom(list):
    pass


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 4), nn.BatchNorm1d(4)])
        self.activation = nn.functional.relu
        self.register_buffer("count", holdfast.tensor(3))

    def forward(self, x):
        for layer in self.layers:
            x = self.activation(layer(x))
        return x * self.count


@pytest.mark.parametrize("weights_only", [None, False])
def test_whole_modules(weights_only, tmp_path):
    model = Net().eval()
    holdfast.save(model, tmp_path / "x.pt")
    twin = holdfast.load(tmp_path / "x.pt", weights_only=weights_only)
    x = holdfast.randn(5, 3)
    assert type(twin) is Net and not twin.training
    assert holdfast.equal(twin(x), model(x))
    assert all(isinstance(p, nn.Parameter) for p in twin.parameters())
    with pytest.raises(UnsafeError, match="Net"):
        holdfast.load(tmp_path / "x.pt", weights_only=True)


def test_a_module_of_the_scripts_own_file(tmp_path):
    """As in word_language_model: the loading script never imports the class."""
    (tmp_path / "model.py").write_text(
        "from holdfast import nn\nclass Net(nn.Linear):\n    pass\n"
    )
    (tmp_path / "save.py").write_text(
        "import holdfast, model\nholdfast.save(model.Net(2, 3), 'x.pt')\n"
    )
    (tmp_path / "use.py").write_text(
        "import holdfast\nprint(holdfast.load('x.pt').weight.shape)\n"
    )
    for script in ("save.py", "use.py"):
        done = subprocess.run(
            [sys.executable, tmp_path / script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert "[3, 2]" in done.stdout


def test_optimizers_and_schedulers(tmp_path):
    model = nn.Linear(3, 1)
    optimizer = optim.Adam(model.parameters(), lr=0.1)
    schedule = optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for _ in range(3):
        model(holdfast.randn(5, 3)).sum().backward()
        optimizer.step()
        schedule.step()
    everything = (model, optimizer, schedule)
    _, loaded, schedule2 = round_trip(everything, tmp_path)
    assert schedule2.optimizer is loaded
    assert loaded.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
    x = holdfast.randn(5, 3)
    twin, loaded, _ = round_trip(everything, tmp_path)
    for one, two in ((model, optimizer), (twin, loaded)):
        two.zero_grad()
        one(x).sum().backward()
        two.step()
    assert holdfast.equal(model.weight, twin.weight)


def test_values_beyond_containers(tmp_path):
    value = {
        "when": datetime.datetime(2026, 1, 2, 3),
        "where": pathlib.PurePosixPath("a/b"),
        "options": argparse.Namespace(lr=0.1, layers=[1, 2]),
        "count": Counter("abca"),
        "groups": defaultdict(list, a=[1]),
        "array": np.arange(6, dtype=">i2").reshape(2, 3),
        "scalar": np.float64(1.5),
        "dtype": np.dtype("float16"),
        "text": np.array(["a", "bc"]),
        "range": range(3, 9, 2),
        "fraction": Fraction(1, 3),
    }
    loaded = round_trip(value, tmp_path)
    for name in ("array", "text"):
        got, expected = loaded.pop(name), value.pop(name)
        assert got.dtype == expected.dtype.newbyteorder("=")
        np.testing.assert_array_equal(got, expected)
    assert loaded == value and type(loaded["scalar"]) is np.float64


def test_classes_that_nobody_allowed(tmp_path):
    path = tmp_path / "x.pt"
    holdfast.save({"settings": Settings(), "list": Custom([1])}, path)
    name = f"{__name__}.Settings"
    with pytest.raises(UnsafeError, match=f"names {name}, .*add_safe_globals"):
        holdfast.load(path)
    with safe_globals([Settings, Custom]):
        assert get_safe_globals() == [Settings, Custom]
        for weights_only in (None, True):
            loaded = holdfast.load(path, weights_only=weights_only)
            assert loaded["settings"].rate == 0.1 and loaded["list"] == [1]
    assert not get_safe_globals()
    with pytest.raises(UnsafeError):
        holdfast.load(path)
    add_safe_globals([(Settings, name), Custom])
    assert holdfast.load(path)["settings"].rate == 0.1
    clear_safe_globals()
    assert holdfast.load(path, weights_only=False)["settings"].rate == 0.1
    with pytest.raises(TypeError, match="takes classes"):
        add_safe_globals([5])


class Strange:
    pass


def test_what_a_file_names_that_is_refused(torch, tmp_path):
    """As torch.serialization.get_unsafe_globals_in_checkpoint of PyTorch 2.6."""
    ask = torch.serialization.get_unsafe_globals_in_checkpoint
    path = tmp_path / "file.pt"
    torch.save({"a": torch.ones(2), "net": torch.nn.Linear(2, 2).state_dict()}, path)
    assert ask(path) == []
    torch.save([Strange(), Strange(), torch.ones(1)], path)
    name = f"{Strange.__module__}.Strange"
    assert ask(path) == [name]
    with open(path, "rb") as file:
        assert ask(file) == [name]
    with torch.serialization.safe_globals([Strange]):
        assert ask(path) == []
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="the zip format"):
        ask(path)
