# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sequences of different lengths, padded to one tensor or packed into one.

Packed: the steps of all sequences one after the other, longest sequence first,
so that step t has the first batch_sizes[t] sequences.
"""

from collections import namedtuple

import holdfast

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
    "unpack_sequence",
]

_Fields = namedtuple(
    "PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"]
)


class PackedSequence(_Fields):
    """data [n, *], batch_sizes int64 [T], and the order the batch was in.

    Made by pack_padded_sequence and pack_sequence; recurrent layers take and
    return it.
    """

    def __new__(
        cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None
    ):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """The sequence with data.to(*args, **kwargs)."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def cpu(self):
        """The sequence with data.cpu()."""
        return self._replace(data=self.data.cpu())

    def float(self):
        """The sequence with float32 data."""
        return self.to(holdfast.float32)

    def double(self):
        """The sequence with float64 data."""
        return self.to(holdfast.float64)

    @property
    def is_cuda(self):
        """Whether data is on a GPU."""
        return self.data.is_cuda


def invert_permutation(permutation):
    """The permutation that undoes `permutation` int64 [n]; None stays None."""
    if permutation is None:
        return None
    places = holdfast.arange(permutation.numel())
    return holdfast.empty_like(permutation).scatter_(0, permutation, places)


def _rows(lengths):
    """Per step, the sequences it has; `lengths` in descending order."""
    counts = []
    live = len(lengths)
    for step in range(lengths[0]):
        while lengths[live - 1] <= step:
            live -= 1
        counts.append(live)
    return counts


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Packs input [T, B, *] (batch_first: [B, T, *]) of lengths int64 [B].

    `lengths` may be a list; a tensor is read. enforce_sorted: they must descend.
    """
    if isinstance(lengths, holdfast.Tensor):
        lengths = lengths.tolist()
    lengths = [int(n) for n in lengths]
    batch = input.shape[0 if batch_first else 1]
    if len(lengths) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got "
            f"{len(lengths)} (batch_size={batch})"
        )
    if not lengths or min(lengths) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in "
            "'lengths' that is <= 0"
        )
    order = sorted(range(batch), key=lambda i: -lengths[i])
    descending = [lengths[i] for i in order]
    sorted_indices = None
    if not enforce_sorted:
        sorted_indices = holdfast.tensor(order, dtype=holdfast.int64)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    elif descending != lengths:
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when "
            "`enforce_sorted` is True. You can pass `enforce_sorted=False` to "
            "pack_padded_sequence and/or pack_sequence to sidestep this requirement "
            "if you do not need ONNX exportability."
        )
    steps = input.shape[1 if batch_first else 0]
    if descending[0] > steps:
        raise RuntimeError(
            f"Expected lengths of at most {steps}, the padded size. Got "
            f"{descending[0]}."
        )
    if batch_first:
        input = input.transpose(0, 1)
    counts = _rows(descending)
    places = [t * batch + b for t, count in enumerate(counts) for b in range(count)]
    flat = input.reshape((steps * batch,) + tuple(input.shape)[2:])
    data = flat.index_select(0, holdfast.tensor(places, dtype=holdfast.int64))
    sizes = holdfast.tensor(counts, dtype=holdfast.int64)
    return PackedSequence(data, sizes, sorted_indices)


def pad_packed_sequence(
    sequence, batch_first=False, padding_value=0.0, total_length=None
):
    """(padded [T, B, *], lengths int64 [B]): the inverse of pack_padded_sequence."""
    counts = sequence.batch_sizes.tolist()
    steps, batch = len(counts), counts[0]
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest "
                f"sequence in input, but got total_length={total_length} and max "
                f"sequence length being {steps}"
            )
        steps = total_length
    data = sequence.data
    width = tuple(data.shape)[1:]
    places = [t * batch + b for t, count in enumerate(counts) for b in range(count)]
    flat = data.new_full((steps * batch,) + width, padding_value)
    index = holdfast.tensor(places, dtype=holdfast.int64)
    shape = (index.shape[0],) + (1,) * len(width)
    index = index.reshape(shape).expand(tuple(data.shape))
    padded = flat.scatter(0, index, data).reshape((steps, batch) + width)
    lengths = [sum(b < count for count in counts) for b in range(batch)]
    lengths = holdfast.tensor(lengths, dtype=holdfast.int64)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths.index_select(0, sequence.unsorted_indices)
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Tensors [T_i, *] as one [T, B, *], padded to the longest."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"padding_side must be left or right, not {padding_side}")
    longest = max(s.shape[0] for s in sequences)
    padded = []
    for s in sequences:
        gap = longest - s.shape[0]
        sides = [0, gap] if padding_side == "right" else [gap, 0]
        pad = [0, 0] * (s.dim() - 1) + sides
        padded.append(holdfast._C.ops.constant_pad(s, pad, padding_value))
    return holdfast.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The list of tensors that pad_sequence made one of."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    counts = lengths.tolist() if hasattr(lengths, "tolist") else lengths
    return [padded_sequences[i, :n] for i, n in enumerate(counts)]


def pack_sequence(sequences, enforce_sorted=True):
    """Tensors [T_i, *], packed."""
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(
        pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted
    )


def unpack_sequence(packed_sequences):
    """The list of tensors that pack_sequence made one of."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
