# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Lightning: Trainer(accelerator=lightning.HoldfastAccelerator(), devices=1).

Its Trainer knows an accelerator for each device of its own
(lightning/pytorch/trainer/connectors/accelerator_connector.py) and takes an object of
a subclass for others. Its precision plugins for "bf16-mixed" ask `torch.autocast` for a
device of the name it is given."""

import torch
from lightning.fabric.strategies import SingleDeviceStrategy as _FabricStrategy
from lightning.pytorch.accelerators import Accelerator
from lightning.pytorch.strategies import SingleDeviceStrategy


class HoldfastAccelerator(Accelerator):
    """One daemon as the device of a Trainer or a Fabric."""

    def setup_device(self, device):
        if device.type != "holdfast":
            raise ValueError(f"HoldfastAccelerator is for holdfast. Got {device}.")

    def teardown(self):
        pass

    def get_device_stats(self, device):
        return {}

    @staticmethod
    def parse_devices(devices):
        return [0]

    @staticmethod
    def get_parallel_devices(devices):
        return [torch.device("holdfast", 0)]

    @staticmethod
    def auto_device_count():
        return 1

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def name():
        return "holdfast"


def strategy():
    """For Trainer(strategy=...): without it Lightning's default would put a module on
    the CPU, since it looks for a device of its own list."""
    return SingleDeviceStrategy("holdfast:0", accelerator=HoldfastAccelerator())


def fabric_strategy():
    """The same for lightning.Fabric."""
    return _FabricStrategy("holdfast:0", accelerator=HoldfastAccelerator())
