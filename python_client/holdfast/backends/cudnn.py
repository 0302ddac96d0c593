# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.backends.cudnn: kept, read by nothing on a CPU."""

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available():
    """Whether the daemon computes with cuDNN."""
    return False


def version():
    """cuDNN's version, or None."""
    return None
