# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""torch.hub from local files, collect_env, model_zoo, tensorboard."""

import hashlib

import pytest

import holdfast
from holdfast import errors, hub

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_dir", str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    return tmp_path / "checkpoints"


def test_weights_come_from_the_folder(folder):
    path = folder / "net.pth"
    holdfast.save({"w": holdfast.ones(2)}, str(path))
    url = "https://example.org/models/net.pth"
    state = hub.load_state_dict_from_url(url, progress=True)
    assert state["w"].tolist() == [1.0, 1.0]
    assert holdfast.utils.model_zoo.load_url(url)["w"].tolist() == [1.0, 1.0]
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    right, wrong = f"net-{digest[:8]}.pth", "net-00000000.pth"
    for name in (right, wrong):
        (folder / name).write_bytes(path.read_bytes())
    url = "https://example.org/"
    assert hub.load_state_dict_from_url(url + right, check_hash=True)
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.load_state_dict_from_url(url + wrong, check_hash=True)
    with pytest.raises(FileNotFoundError, match=r"put it at .*checkpoints/other.pth"):
        hub.load_state_dict_from_url(url + "other.pth")
    with pytest.raises(errors.UnsupportedError, match="downloads nothing"):
        hub.download_url_to_file(url, "x")


def test_local_repositories(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "def two(n=1):\n    'Twice.'\n    return 2 * n\n"
    )
    assert hub.list(str(tmp_path), source="local") == ["two"]
    assert hub.load(str(tmp_path), "two", 3, source="local") == 6
    assert hub.help(str(tmp_path), "two", source="local") == "Twice."
    with pytest.raises(RuntimeError, match="Cannot find callable one"):
        hub.load(str(tmp_path), "one", source="local")
    with pytest.raises(errors.UnsupportedError, match="source='local'"):
        hub.load("pytorch/vision", "resnet18")


def test_collect_env(capsys):
    from holdfast.utils import collect_env

    collect_env.main()
    text = capsys.readouterr().out
    assert "Holdfast version: " in text and "Device: cpu" in text


def test_tensorboard(tmp_path):
    from holdfast.utils.tensorboard import SummaryWriter

    try:
        import tensorboard  # noqa: F401
    except ImportError:
        with pytest.raises(ModuleNotFoundError, match="pip install tensorboard"):
            SummaryWriter(tmp_path)
        return
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", holdfast.tensor(0.5), 3)
        writer.add_histogram("weights", holdfast.randn(100), 1)
        with pytest.raises(errors.UnsupportedError, match="add_graph"):
            writer.add_graph(None)
    (file,) = tmp_path.iterdir()
    assert b"loss" in file.read_bytes()
