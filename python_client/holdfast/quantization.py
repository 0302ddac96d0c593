# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.quantization: the marks that models carry; quantizing is refused by name."""

from holdfast.errors import UnsupportedError
from holdfast.missing import module_getattr
from holdfast.nn import Identity


class QuantStub(Identity):
    """Where a quantized model would begin: passes its input on."""

    def __init__(self, qconfig=None):
        super().__init__()


class DeQuantStub(QuantStub):
    """Where a quantized model would end: passes its input on."""


def _refused(name):
    def refuse(*args, **kwargs):
        raise UnsupportedError(
            f"holdfast has no torch.quantization.{name}: it has no quantized types. "
            "bfloat16 halves a model's memory: model.to(torch.bfloat16)."
        )

    refuse.__name__ = name
    refuse.__doc__ = "Refused: there are no quantized types."
    return refuse


quantize_dynamic, quantize, quantize_qat, prepare, prepare_qat, convert = (
    _refused(name)
    for name in (
        "quantize_dynamic",
        "quantize",
        "quantize_qat",
        "prepare",
        "prepare_qat",
        "convert",
    )
)
fuse_modules, get_default_qconfig = (
    _refused(name) for name in ("fuse_modules", "get_default_qconfig")
)

__getattr__ = module_getattr("torch.quantization")
