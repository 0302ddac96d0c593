# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What torch.__version__ is under `holdfast run`, and what is there of that level."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.torch_version import LEVEL, TorchVersion

# What programs ask for when they have found torch.__version__ >= the release that
# brought it: names, and parameters of functions.
LEVELS = {
    "2.0": """
        torch.compile torch.set_default_device torch.func.functional_call torch.vmap
        torch.func.stack_module_state torch.nn.functional.scaled_dot_product_attention
        torch.optim.lr_scheduler.LRScheduler torch.Tensor.untyped_storage
        torch.optim.Optimizer.register_step_post_hook torch.cuda.OutOfMemoryError
        torch.utils._pytree.tree_map torch.nn.Module.register_full_backward_pre_hook
    """,
    "2.1": """
        torch.compiler.disable torch.compiler.is_compiling torch.cpu.is_available
        torch.nn.utils.parametrizations.weight_norm torch.load(mmap)
        torch.nn.Module.load_state_dict(assign) torch.utils._pytree.tree_leaves
    """,
    "2.2": """
        torch.utils._pytree.register_pytree_node torch.nn.Module.compile
        torch.utils._pytree.tree_map_with_path torch.get_default_device
    """,
    "2.3": """
        torch.amp.GradScaler torch.nn.attention.sdpa_kernel torch.amp.autocast
        torch.nn.attention.SDPBackend torch.nn.attention.bias.causal_lower_right
    """,
    "2.4": """
        torch.nn.RMSNorm torch.nn.functional.rms_norm torch.amp.custom_fwd
        torch.serialization.add_safe_globals torch.amp.is_autocast_available
    """,
    "2.5": """
        torch.nn.Buffer torch.optim.Adafactor torch.serialization.safe_globals
        torch.nn.attention.flex_attention.flex_attention torch.nn.Module.set_submodule
        torch.nn.functional.scaled_dot_product_attention(enable_gqa)
        torch.nn.attention.flex_attention.create_block_mask
    """,
    "2.6": """
        torch.accelerator.current_accelerator torch.accelerator.synchronize
        torch.compiler.set_stance torch.accelerator.device_count
        torch.serialization.get_unsafe_globals_in_checkpoint torch.load(weights_only)
    """,
    "2.7": """
        torch.func.linearize torch.accelerator.set_device_index
    """,
    "2.8": """
        torch.accelerator.current_device_index torch.compiler.nested_compile_region
    """,
    "2.9": """
        torch.optim.Muon torch.accelerator.memory_allocated
        torch.accelerator.empty_cache torch.accelerator.memory_stats
        torch.accelerator.max_memory_allocated
    """,
}


@pytest.mark.parametrize("release", LEVELS)
def test_the_level_is_really_there(release):
    assert TorchVersion(release) <= LEVEL
    for name in LEVELS[release].split():
        path, _, parameter = name.rstrip(")").partition("(")
        value = holdfast
        for part in path.split(".")[1:]:
            value = getattr(value, part)
        if parameter:
            assert parameter in inspect.signature(value).parameters, name


def test_the_level_is_the_last_one_of_the_table():
    assert LEVEL.startswith(list(LEVELS)[-1] + ".")
    page = Path(__file__).parents[2] / "docs" / "compatibility.md"
    assert f"`torch.__version__` is `{LEVEL}+holdfast" in page.read_text()


PROGRAM = """
import importlib.metadata, importlib.util
import torch
print(torch.__version__)
print(importlib.metadata.version("torch"))
print(importlib.metadata.distribution("torch").metadata["Name"])
print(importlib.util.find_spec("torch") is not None)
print(torch.__version__ >= "2.9", torch.__version__ < (2, 10))
print("torch" in {d.metadata["Name"] for d in importlib.metadata.distributions()})
try:
    importlib.metadata.version("no-such-package")
except importlib.metadata.PackageNotFoundError as error:
    print(type(error).__name__)
"""


def test_programs_are_told_one_version(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    path = os.pathsep.join(
        [str(Path(holdfast.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    said = subprocess.run(
        [sys.executable, "-m", "holdfast", "run", str(file)],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split()
    version = f"{LEVEL}+holdfast.{holdfast.__version__}"
    assert said == [
        *(version, version, "torch", "True"),
        *("True", "True", "True", "PackageNotFoundError"),
    ]


def test_versions_compare_as_numbers():
    version = TorchVersion("1.13.1+holdfast.0.1.0")
    for older in ("1.5", "1.5.0", "1.13", "1.13.1", "1.13.1rc2", "0.4.1.post2", (1, 9)):
        assert version > older and version >= older and version != older
        assert not version < older and not version <= older
    for newer in ("1.13.2", "2", "2.0.0a0", "10.0", (1, 14)):
        assert version < newer and version <= newer and version != newer
    assert version == "1.13.1+holdfast.0.1.0" and version.startswith("1.13")
    assert TorchVersion("1.13") == "1.13.0" and TorchVersion("2.0a0") < "2.0rc1"
    assert TorchVersion("2.0rc1") < "2.0" and TorchVersion("2.0.dev20230101") < "2.0a0"
    assert version != "main" and version < "main"  # as text
    assert {version: 1}["1.13.1+holdfast.0.1.0"] == 1
    assert version.split(".")[:2] == ["1", "13"]
