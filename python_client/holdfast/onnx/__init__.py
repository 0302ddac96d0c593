# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.onnx, which Holdfast does not have: programs run as they are written, and
no graph of them is kept that could be exported."""

from holdfast.errors import UnsupportedError
from holdfast.missing import module_getattr


def export(*args, **kwargs):
    """Refused; save the state_dict and export with PyTorch."""
    raise UnsupportedError(
        "holdfast has no torch.onnx.export: save the model's state_dict() and export "
        "it with PyTorch."
    )


_export = export


def is_in_onnx_export():
    """False."""
    return False


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Nothing: packages register their operators when they are imported."""


__getattr__ = module_getattr(
    "torch.onnx",
    submodules=("symbolic_helper", "symbolic_opset9", "symbolic_opset11"),
)
