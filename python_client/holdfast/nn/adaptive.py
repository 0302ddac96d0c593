# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Softmax over many classes, the rare ones in clusters (Grave et al. 2017)."""

from collections import namedtuple

import holdfast

from . import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of `n_classes` classes that are sorted by frequency.

    `cutoffs` ends the clusters; cluster i is projected to in_features /
    div_value^(i + 1) numbers. `forward(input, target)` gives the log-probability of
    every target and their negative mean.
    """

    def __init__(
        self,
        in_features,
        n_classes,
        cutoffs,
        div_value=4.0,
        head_bias=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        cutoffs = list(cutoffs)
        if (
            not cutoffs
            or cutoffs != sorted(set(cutoffs))
            or cutoffs[0] <= 0
            or cutoffs[-1] > n_classes - 1
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in "
                "an increasing order, where each value is between 1 and n_classes-1. "
                f"Got {cutoffs} for {n_classes} classes."
            )
        options = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = cutoffs + [n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **options),
                    Linear(hidden, size, bias=False, **options),
                )
            )

    def reset_parameters(self):
        """Draws all weights anew."""
        for layer in (self.head, *(part for pair in self.tail for part in pair)):
            layer.reset_parameters()

    def forward(self, input, target):
        if input.dim() != target.dim() + 1 or input.dim() not in (1, 2):
            raise RuntimeError(
                "input of shape [N, in_features] goes with targets [N]. "
                f"Got {list(input.shape)} and {list(target.shape)}."
            )
        batched = input.dim() == 2
        logs = self.log_prob(input if batched else input.unsqueeze(0))
        picked = logs.gather(1, target.reshape(-1, 1)).squeeze(1)
        loss = -picked.mean()
        return _ASMoutput(picked if batched else picked.squeeze(0), loss)

    def log_prob(self, input):
        """[N, n_classes]: the log-probability of every class."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, tail in enumerate(self.tail):
            own = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(tail(input), dim=1) + own)
        return holdfast.cat(parts, 1)

    def predict(self, input):
        """The most probable class of every row."""
        return self.log_prob(input).argmax(dim=1)
