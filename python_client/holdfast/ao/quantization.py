# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.quantization at its newer address."""

from holdfast import quantization
from holdfast.quantization import DeQuantStub, QuantStub  # noqa: F401


def __getattr__(name):
    return getattr(quantization, name)
