# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.backends.mkldnn: the daemon's CPU kernels stand on oneDNN."""

enabled = True


def is_available():
    """True: the daemon has it built in."""
    return True
