# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Checkpoints that PyTorch wrote are read, and PyTorch reads ours, bit for bit."""

import io
import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest

import holdfast
from holdfast import nn

peer = pytest.importorskip("torch")

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 "
    "complex128"
).split()


def to_peer(value, **options):
    buffer = io.BytesIO()
    holdfast.save(value, buffer)
    buffer.seek(0)
    return peer.load(buffer, **options)


def from_peer(value, legacy=False, **options):
    buffer = io.BytesIO()
    peer.save(value, buffer, _use_new_zipfile_serialization=not legacy)
    buffer.seek(0)
    return holdfast.load(buffer, **options)


def bits(tensor):
    """The elements' bytes, of either library's tensor."""
    tensor = tensor.detach().contiguous()
    if isinstance(tensor, holdfast.Tensor):
        return memoryview(tensor._bytes()).tobytes()
    if tensor.dtype is peer.bfloat16:
        tensor = tensor.view(peer.int16)
    return tensor.numpy().tobytes()


def assert_alike(ours, theirs):
    assert str(ours.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert tuple(ours.stride()) == tuple(theirs.stride())
    assert ours.storage_offset() == theirs.storage_offset()
    assert ours.requires_grad == theirs.requires_grad
    assert bits(ours) == bits(theirs)


def random_bits(dtype, shape):
    """PyTorch's tensor of any bit patterns at all."""
    size = peer.empty(0, dtype=dtype).element_size()
    count = int(np.prod(shape))
    data = np.random.default_rng(3).integers(0, 256, count * size, np.uint8)
    if dtype is peer.bool:
        data %= 2
    if not count:
        return peer.empty(shape, dtype=dtype)
    return peer.frombuffer(bytearray(data.tobytes()), dtype=dtype).reshape(shape)


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_both_ways(dtype, legacy):
    dtype = getattr(peer, dtype)
    tensors = [random_bits(dtype, shape) for shape in [(), (0,), (5,), (2, 3, 4)]]
    tensors += [
        tensors[3].transpose(0, 2),
        tensors[3][1:, ::2],
        tensors[2].expand(3, 5),
    ]
    for weights_only in (True, None, False):
        loaded = from_peer(tensors, legacy, weights_only=weights_only)
        for ours, theirs in zip(loaded, tensors):
            assert_alike(ours, theirs)
    for ours, theirs in zip(loaded, to_peer(loaded)):
        assert_alike(ours, theirs)


def rows(torch):
    return (torch.arange(15.0) * 5 % 7).reshape(5, 3)


def training_state(torch, model, optimizer):
    for _ in range(2):
        optimizer.zero_grad()
        model(rows(torch)).pow(2).sum().backward()
        optimizer.step()
    return {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "best": float("inf"),
        "names": ("a", b"b", None),
        "rng": torch.get_rng_state(),
        "dtype": torch.float16,
        "device": torch.device("cpu"),
        "size": torch.ones(2, 3).shape,
    }


def alike(ours, theirs):
    if isinstance(ours, holdfast.Tensor):
        assert_alike(ours, theirs)
    elif isinstance(ours, dict):
        assert type(ours) is type(theirs) and list(ours) == list(theirs)
        for key in ours:
            alike(ours[key], theirs[key])
    elif isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            alike(a, b)
    elif isinstance(ours, (holdfast.dtype, holdfast.device)):
        assert str(ours).rpartition(".")[2] == str(theirs).rpartition(".")[2]
    else:
        assert ours == theirs


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
def test_training_states_both_ways(name, legacy):
    options = {"lr": 0.01, **({"momentum": 0.9} if name == "SGD" else {})}

    def made(torch):
        net = torch.nn.Sequential(
            torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)
        )
        return net, getattr(torch.optim, name)(net.parameters(), **options)

    theirs = training_state(peer, *made(peer))
    alike(from_peer(theirs, legacy, weights_only=True), theirs)
    model, optimizer = made(holdfast)
    ours = training_state(holdfast, model, optimizer)
    seen = to_peer(ours)
    alike(ours, seen)
    # And go on with it there.
    twin, other = made(peer)
    twin.load_state_dict(seen["model"])
    other.load_state_dict(seen["optimizer"])
    for torch, net, opt in ((holdfast, model, optimizer), (peer, twin, other)):
        opt.zero_grad()
        net(rows(torch)).pow(2).sum().backward()
        opt.step()
    for a, b in zip(model.parameters(), twin.parameters()):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), 1e-5, 1e-5)


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_sharing_and_attributes_both_ways(legacy):
    base = peer.arange(12.0).reshape(3, 4)
    weight = peer.nn.Parameter(peer.ones(3))
    loaded = from_peer(
        OrderedDict(a=base, b=base.t(), c=base[1], w=weight, again=weight), legacy
    )
    loaded["c"].fill_(-1)
    assert loaded["a"][1].tolist() == [-1] * 4 and loaded["b"][0, 1].item() == -1
    assert type(loaded["w"]) is nn.Parameter and loaded["again"] is loaded["w"]
    loaded["w"].note = "kept"
    seen = to_peer(loaded)
    seen["b"].zero_()
    assert seen["a"].sum() == 0
    assert type(seen["w"]) is peer.nn.Parameter and seen["w"].note == "kept"
    assert seen["again"] is seen["w"]


LAYERS = {
    "Linear": (3, 4),
    "Bilinear": (2, 3, 4),
    "Conv1d": (2, 4, 3),
    "Conv2d": (2, 4, 3),
    "Conv3d": (2, 4, 3),
    "ConvTranspose2d": (2, 4, 3),
    "MaxPool2d": (2,),
    "AvgPool2d": (2,),
    "AdaptiveAvgPool2d": (1,),
    "BatchNorm1d": (4,),
    "BatchNorm2d": (4,),
    "LayerNorm": (4,),
    "GroupNorm": (2, 4),
    "InstanceNorm2d": (4,),
    "Embedding": (5, 3),
    "EmbeddingBag": (5, 3),
    "Dropout": (0.5,),
    "ReLU": (),
    "LeakyReLU": (),
    "GELU": (),
    "Softmax": (1,),
    "PReLU": (),
    "ELU": (),
    "Flatten": (),
    "Identity": (),
    "LSTM": (3, 4, 2),
    "GRU": (3, 4),
    "RNN": (3, 4),
    "LSTMCell": (3, 4),
    "GRUCell": (3, 4),
    "MultiheadAttention": (4, 2),
    "TransformerEncoderLayer": (4, 2, 8),
    "CrossEntropyLoss": (),
    "MSELoss": (),
    "BCEWithLogitsLoss": (),
    "Upsample": (None, 2.0),
    "PixelShuffle": (2,),
    "ZeroPad2d": (1,),
}
INPUTS = {
    "Linear": (2, 3),
    "Conv1d": (2, 2, 9),
    "Conv2d": (2, 2, 9, 9),
    "Conv3d": (1, 2, 5, 5, 5),
    "ConvTranspose2d": (2, 2, 5, 5),
    "LayerNorm": (3, 4),
    "GroupNorm": (3, 4),
    "LSTM": (5, 2, 3),
    "GRU": (5, 2, 3),
    "RNN": (5, 2, 3),
    "LSTMCell": (2, 3),
    "GRUCell": (2, 3),
    "BatchNorm1d": (3, 4),
    "BatchNorm2d": (3, 4, 2, 2),
    "InstanceNorm2d": (3, 4, 2, 2),
    "MaxPool2d": (1, 1, 4, 4),
    "AvgPool2d": (1, 1, 4, 4),
    "AdaptiveAvgPool2d": (1, 1, 4, 4),
    "TransformerEncoderLayer": (5, 2, 4),
    "Upsample": (1, 1, 3, 3),
    "PixelShuffle": (1, 4, 2, 2),
    "ZeroPad2d": (1, 1, 2, 2),
}


@pytest.mark.parametrize("name", LAYERS)
def test_whole_modules_both_ways(name):
    shape = INPUTS.get(name, (2, 4))
    x = np.random.default_rng(0).random(shape).astype("float32")

    def result(torch, module):
        if name in ("Bilinear", "Embedding", "EmbeddingBag", "MultiheadAttention"):
            return None
        if name.endswith("Loss"):
            return module(torch.tensor(x), torch.tensor(x)).item()
        out = module.eval()(torch.tensor(x))
        while isinstance(out, tuple):
            out = out[0]
        return out.detach().numpy()

    theirs = peer.nn.Sequential(OrderedDict(it=getattr(peer.nn, name)(*LAYERS[name])))
    ours = from_peer(theirs)
    assert type(ours.it) is getattr(nn, name)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert str(ours) == str(theirs)
    expected = result(peer, theirs.it)
    if expected is not None:
        np.testing.assert_allclose(result(holdfast, ours.it), expected, atol=1e-5)
    made = nn.Sequential(OrderedDict(it=getattr(nn, name)(*LAYERS[name])))
    seen = to_peer(made)
    assert type(seen.it) is getattr(peer.nn, name)
    assert str(seen) == str(made)
    expected = result(holdfast, made.it)
    if expected is not None:
        np.testing.assert_allclose(result(peer, seen.it), expected, atol=1e-5)


def test_a_program_saves_and_another_loads(tmp_path):
    """The same script under PyTorch and `holdfast run`, in both orders."""
    script = tmp_path / "program.py"
    script.write_text(
        """
import sys
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x).relu()

if sys.argv[1] == "save":
    net = Net()
    torch.save(net, sys.argv[2])
else:
    net = torch.load(sys.argv[2])
print([f"{v:.4f}" for v in net(torch.ones(1, 4))[0].tolist()])
"""
    )
    commands = {
        "torch": [sys.executable, str(script)],
        "holdfast": [sys.executable, "-m", "holdfast", "run", str(script)],
    }
    for writer, reader in (("torch", "holdfast"), ("holdfast", "torch")):
        path = str(tmp_path / f"{writer}.pt")
        shown = []
        for who, what in ((writer, "save"), (reader, "load")):
            done = subprocess.run(
                [*commands[who], what, path], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            shown.append(done.stdout)
        assert shown[0] == shown[1]


def test_truncated_and_damaged_legacy_files(tmp_path):
    buffer = io.BytesIO()
    peer.save({"x": peer.arange(40)}, buffer, _use_new_zipfile_serialization=False)
    content = buffer.getvalue()
    for size in range(20, len(content), 7):
        with pytest.raises(holdfast.serialization.FormatError):
            holdfast.load(io.BytesIO(content[:size]))
