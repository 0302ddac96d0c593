# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.quantization at its newer address."""

from holdfast import quantization
from holdfast.quantization import (  # noqa: F401
    DeQuantStub as DeQuantStub,
    QuantStub as QuantStub,
)


def __getattr__(name):
    return getattr(quantization, name)
