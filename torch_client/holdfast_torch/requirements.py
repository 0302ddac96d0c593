# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What must hold before PyTorch is given another device: ImportError says why not."""

import os

import torch

# Set to 1 to import beside a CUDA that works.
OVERRIDE = "HOLDFAST_TORCH_BESIDE_CUDA"


def check():
    """ImportError: the package holdfast is missing, or PyTorch has a device already."""
    _require_holdfast()
    _refuse_second_device()


def _require_holdfast():
    try:
        import holdfast._C
    except ImportError as error:
        raise ImportError(
            "holdfast_torch needs the package holdfast that came with it (PyPI's "
            "`holdfast` is another project): pip install holdfast_tensors-*.whl, and "
            "holdfast_tensors_server-*.whl where the daemon shall run. Import said: "
            f"{error}"
        ) from error
    if not hasattr(holdfast._C, "_client_api"):
        raise ImportError(
            f"holdfast_torch needs a newer holdfast than {holdfast.__version__}, in "
            f"{holdfast.__path__[0]}. Install the wheels that were built together."
        )


def _refuse_second_device():
    """PyTorch has one accelerator per process: where ours is registered, its engine
    takes backward's streams from us, and .backward() of CUDA tensors breaks."""
    if os.environ.get(OVERRIDE, "0") not in ("", "0") or not torch.cuda.is_available():
        return
    raise ImportError(
        f"this PyTorch ({torch.__version__}) has a GPU of its own, and one process of "
        "PyTorch has one accelerator: with holdfast_torch, .backward() of tensors on "
        '"cuda" would fail. Hide the GPU (CUDA_VISIBLE_DEVICES=) or set '
        f"{OVERRIDE}=1 if this program uses no tensors on it."
    )
