# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What distributions of one probability, or of its log odds, have in common."""

from holdfast.distributions.parameters import (
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class ProbsOrLogits:
    """Mixin: exactly one of `probs` and `logits` is set by __init__ (as a tensor), the
    other is computed when first asked for, inside the graph."""

    @property
    def _param(self):
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    @property
    def param_shape(self):
        """The shape of the parameter that was given."""
        return self._param.shape

    @lazy_property
    def logits(self):
        """Log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """Probabilities."""
        return logits_to_probs(self.logits, is_binary=True)
