# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.holdfast: what PyTorch asks a device's module."""

import holdfast
import torch


def is_available():
    return True


def is_initialized():
    return True


def device_count():
    return 1


def current_device():
    return 0


def set_device(device):
    pass


def synchronize(device=None):
    """Waits until everything submitted is done."""
    holdfast.synchronize()


def manual_seed(seed):
    holdfast.manual_seed(seed)


manual_seed_all = manual_seed


def _is_in_bad_fork():
    return False


def get_rng_state(device=None):
    return torch.from_numpy(holdfast.get_rng_state().numpy())


def set_rng_state(state, device=None):
    holdfast.set_rng_state(holdfast.from_numpy(state.numpy()))


def get_amp_supported_dtype():
    return [torch.float16, torch.bfloat16]
