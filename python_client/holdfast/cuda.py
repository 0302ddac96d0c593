# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Whether the daemon computes on a GPU: what programs ask of torch.cuda."""

from holdfast import _C
from holdfast.missing import module_getattr


def is_available():
    """Whether the session's tensors live on a GPU; connects if need be."""
    return _C.default_session().device.startswith("cuda")


def device_count():
    """GPUs that the session sees: one or none."""
    return int(is_available())


def manual_seed(seed):
    """Nothing: a session has one stream, which holdfast.manual_seed seeds."""


manual_seed_all = manual_seed

__getattr__ = module_getattr("torch.cuda")
