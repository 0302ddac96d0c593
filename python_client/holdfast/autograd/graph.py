# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Hooks on saved tensors, which Holdfast does not have: the daemon saves them."""

import contextlib

from holdfast.errors import UnsupportedError


class saved_tensors_hooks:
    """Refused: what ops save for backward never leaves the daemon."""

    def __init__(self, pack_hook, unpack_hook):
        raise UnsupportedError(
            "holdfast has no autograd.graph.saved_tensors_hooks: the daemon saves "
            "tensors itself. To save memory use utils.checkpoint."
        )


class save_on_cpu(contextlib.ContextDecorator):
    """Does nothing: what backward needs stays where the daemon computes it.

    Values and gradients are those that PyTorch gives; with an accelerator its
    memory is not relieved: utils.checkpoint does that.
    """

    def __init__(self, pin_memory=False, device_type="cuda"):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None
