# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tables of vectors looked up by index."""

import holdfast

from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class Embedding(Module):
    """Looks up rows of a table: int64 indices [*] -> [*, embedding_dim].

    weight [num_embeddings, embedding_dim] starts standard normal. The row
    `padding_idx` starts at zero and gets no gradient.
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        F.refuse(
            "Embedding",
            max_norm=max_norm,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        if _weight is None:
            self.weight = Parameter(
                holdfast.empty(
                    (num_embeddings, embedding_dim), device=device, dtype=dtype
                ),
                requires_grad=not _freeze,
            )
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self):
        """Draws the table anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with holdfast.no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(cls, embeddings, freeze=True, padding_idx=None):
        """An Embedding around a table [num_embeddings, embedding_dim]."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            rows, columns, padding_idx=padding_idx, _weight=embeddings, _freeze=freeze
        )

    def forward(self, input):
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self):
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        return text
