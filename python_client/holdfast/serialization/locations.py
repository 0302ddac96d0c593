# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""load's map_location: where the tensors of a file go."""

import holdfast
from holdfast import _C


class LocatedStorage:
    """What a map_location function is given: a storage before its tensors are made."""

    def __init__(self, location):
        self.location = location

    @property
    def device(self):
        return holdfast.device(self.location)

    @property
    def is_cuda(self):
        return self.device.type == "cuda"

    def cpu(self):
        return LocatedStorage("cpu")

    def cuda(self, device=None, non_blocking=False):
        if isinstance(device, holdfast.device):
            device = device.index
        return LocatedStorage(f"cuda:{device or 0}")

    def to(self, device):
        return LocatedStorage(str(device))


def number_for(location, map_location):
    """The device (its number) that a storage of that location goes to. RuntimeError
    where the daemon does not have it."""
    target = _target(location, map_location)
    if target is None:  # PyTorch: as if there were no map_location
        target = location
    device = holdfast.device(str(target))
    asked = map_location is not None and target != location
    if asked or device.type == "cpu":
        return _C.device_number(device)
    own = holdfast.current_session()
    if device.type != own.device or own.device_count == 0:
        raise RuntimeError(
            f"Attempting to deserialize object on a {device.type.upper()} device but "
            f"the daemon computes on '{own.device}'. If you want its tensors there, "
            f"load with map_location='{own.device}'."
        )
    if (device.index or 0) >= own.device_count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {device.index} but the "
            f"daemon has {own.device_count}. Load with map_location='cuda:0', or start "
            "the daemon with more: holdfastd --device=cuda:all."
        )
    return _C.device_number(device)


def _target(location, map_location):
    if map_location is None:
        return None
    if isinstance(map_location, dict):
        return map_location.get(location)
    if isinstance(map_location, (str, holdfast.device)):
        return str(map_location)
    if not callable(map_location):
        raise TypeError(
            "[load] map_location must be None, a device, a dict or a function. Got "
            f"{type(map_location).__name__}."
        )
    storage = map_location(LocatedStorage(location), location)
    return None if storage is None else storage.location
