# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a DataLoader is made of."""

from holdfast.missing import module_getattr

from . import collate, fetch

__all__ = ["collate", "fetch", "worker"]

# With it comes multiprocessing, which most programs need not load.
__getattr__ = module_getattr("torch.utils.data._utils", submodules=("worker",))
