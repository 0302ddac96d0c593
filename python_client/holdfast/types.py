# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.types: names for annotations."""

from typing import Union

from holdfast import _C
from holdfast._device import device

Number = Union[int, float, bool]
Device = Union[device, str, int, None]
Storage = object
_int, _float, _bool = int, float, bool
_dtype, _device, _size = _C.dtype, device, Union[_C.Size, list, tuple]
_TensorOrTensors = Union[_C.Tensor, tuple]
