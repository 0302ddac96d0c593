# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sets of tensors whose slices along a dimension belong to different sets."""

import holdfast
from holdfast.distributions.constraint import Constraint


class _Sequence(Constraint):
    def __init__(self, cseq, dim=0):
        if not all(isinstance(c, Constraint) for c in cseq):
            raise ValueError(f"Expected a sequence of constraints. Got {cseq!r}.")
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self):
        """True if one of them is."""
        return any(c.is_discrete for c in self.cseq)

    def _rank(self, value):
        if not -value.dim() <= self.dim < value.dim():
            raise ValueError(
                f"Expected a value with dimension {self.dim}. Got {value.dim()}."
            )


class cat(_Sequence):
    """Pieces of `lengths` (one each) along `dim`, each in its own set."""

    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(
                f"There must be a length per constraint. Got {len(self.lengths)} for "
                f"{len(self.cseq)}."
            )

    @property
    def event_dim(self):
        """The largest of theirs."""
        return max(c.event_dim for c in self.cseq)

    def check(self, value):
        """Piece by piece, put together again."""
        self._rank(value)
        pieces = holdfast.split(value, self.lengths, self.dim)
        return holdfast.cat(
            [c.check(piece) for c, piece in zip(self.cseq, pieces)], self.dim
        )


class stack(_Sequence):
    """Slices along `dim`, each in its own set."""

    @property
    def event_dim(self):
        """The largest of theirs, and `dim` where it counts from the end."""
        rank = max(c.event_dim for c in self.cseq)
        return rank + 1 if self.dim + rank < 0 else rank

    def check(self, value):
        """Slice by slice, put together again."""
        self._rank(value)
        slices = holdfast.unbind(value, self.dim)
        return holdfast.stack(
            [c.check(piece) for c, piece in zip(self.cseq, slices)], self.dim
        )
