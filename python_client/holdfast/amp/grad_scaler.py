# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""GradScaler without a GPU: passes everything through, as PyTorch's does."""

import warnings

from holdfast import cuda
from holdfast.errors import UnsupportedError


class GradScaler:
    """Scales losses for float16 training on a GPU; disabled where there is none."""

    def __init__(self, *args, enabled=True, **kwargs):
        if enabled and cuda.is_available():
            raise UnsupportedError("holdfast has no GradScaler on a GPU yet.")
        if enabled:
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  "
                "Disabling.",
                stacklevel=2,
            )

    def is_enabled(self):
        """False."""
        return False

    def scale(self, outputs):
        """outputs."""
        return outputs

    def unscale_(self, optimizer):
        """Nothing."""

    def step(self, optimizer, *args, **kwargs):
        """optimizer.step()."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale=None):
        """Nothing."""

    def get_scale(self):
        """1.0."""
        return 1.0

    def state_dict(self):
        """An empty dict."""
        return {}

    def load_state_dict(self, state_dict):
        """Nothing."""
