# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.quantization: the marks that models carry; there are no quantized types."""

from holdfast.missing import module_getattr
from holdfast.nn import Identity


class QuantStub(Identity):
    """Where a quantized model would begin: passes its input on."""

    def __init__(self, qconfig=None):
        super().__init__()


class DeQuantStub(QuantStub):
    """Where a quantized model would end: passes its input on."""


__getattr__ = module_getattr("torch.quantization")
