# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Hooks on saved tensors, which Holdfast does not have: the daemon saves them."""

from holdfast.errors import UnsupportedError


class saved_tensors_hooks:
    """Refused: what ops save for backward never leaves the daemon."""

    def __init__(self, pack_hook, unpack_hook):
        raise UnsupportedError(
            "holdfast has no autograd.graph.saved_tensors_hooks: the daemon saves "
            "tensors itself. To save memory use utils.checkpoint."
        )


class save_on_cpu:
    """Refused: see saved_tensors_hooks."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        raise UnsupportedError(
            "holdfast has no autograd.graph.save_on_cpu: the daemon saves tensors "
            "itself. To save memory use utils.checkpoint."
        )
