# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Names that packages built on PyTorch (torchvision, timm, einops) import or mark
their functions with, though no compiled operator, export or trace follows."""

import os
import subprocess
import sys

import pytest

PACKAGE = """
import torch
import torch.fx
import torch._six
from torch.ao.quantization import DeQuantStub, QuantStub
from torch.hub import _get_torch_home
from torch.jit.annotations import BroadcastingList2
from torch.onnx import register_custom_op_symbolic
from torch.onnx.symbolic_helper import parse_args
from torch.onnx.symbolic_opset9 import _cast_Long
from torch.onnx.symbolic_opset11 import select, squeeze
from torch.utils.model_zoo import load_url, tqdm

try:
    torch.ops.load_library("/lib/package/_C.so")
except OSError as error:
    print(error)

@parse_args("v", "i")
def symbolic(g, boxes, size):
    return select(g, boxes, size)

register_custom_op_symbolic("package::op", symbolic, 11)

@torch.fx.wrap
def pooled(x, size: BroadcastingList2[int]):
    torch._C._log_api_usage_once("package.pooled")
    return torch.nn.functional.adaptive_avg_pool2d(x, size)

torch.fx.wrap("pooled")
print(isinstance("name", torch._six.string_classes), _get_torch_home()[-5:])
print(pooled(QuantStub()(torch.ones(1, 2, 4, 4)), [2, 1]).shape)
print(sum(tqdm(range(4), disable=True)))
try:
    torch.ops.package.op(1)
except AttributeError as error:
    print(error)
try:
    symbolic(None, 1, 2)
except NotImplementedError as error:
    print(str(error)[:37])
"""

PRINTED = """\
holdfast cannot load /lib/package/_C.so: its operators are PyTorch's
True torch
torch.Size([1, 2, 2, 1])
6
holdfast has no torch.ops.package: it loads no compiled operators
holdfast has no torch.onnx.export: sa
"""


def test_a_package_is_imported(daemon, transport, tmp_path, monkeypatch):
    monkeypatch.delenv("TORCH_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    path = tmp_path / "package.py"
    path.write_text(PACKAGE)
    result = subprocess.run(
        [sys.executable, "-m", "holdfast", "run", path],
        env=dict(os.environ, HOLDFAST_ADDRESS=daemon.address(transport)),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == PRINTED


def test_tqdm_without_the_package(monkeypatch):
    from holdfast.hub import tqdm

    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    values = range(3)
    assert tqdm(values, total=3) is values


@pytest.mark.parametrize("name", ["ao", "ops", "onnx", "jit"])
def test_modules_come_with_the_package(name):
    import holdfast

    assert name in dir(holdfast)
    assert getattr(holdfast, name).__name__ == f"holdfast.{name}"
