# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""How samples become a batch."""

from collections.abc import Mapping, Sequence

import holdfast


def default_collate(batch):
    """Stacks a list of samples along a new first dimension.

    Tensors and NumPy arrays are stacked, numbers become a tensor (floats
    float64, ints int64, bools bool), strings stay a list; dicts, tuples and lists
    are collated element by element. TypeError for anything else.
    """
    first = batch[0]
    if isinstance(first, holdfast.Tensor):
        return holdfast.stack(list(batch), 0)
    kind = type(first)
    if kind.__module__ == "numpy":
        return _collate_numpy(batch, first)
    if isinstance(first, bool):
        return holdfast.tensor(list(batch), dtype=holdfast.bool)
    if isinstance(first, float):
        return holdfast.tensor(list(batch), dtype=holdfast.float64)
    if isinstance(first, int):
        return holdfast.tensor(list(batch), dtype=holdfast.int64)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        collated = {key: default_collate([s[key] for s in batch]) for key in first}
        return collated if kind is dict else _rebuilt(kind, collated)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(default_collate(samples) for samples in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        collated = [default_collate(samples) for samples in zip(*batch)]
        # As PyTorch: a tuple of samples becomes a list of batches.
        return collated if isinstance(first, tuple) else _rebuilt(kind, collated)
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
        f"lists; found {kind}"
    )


def _rebuilt(kind, values):
    try:
        return kind(values)
    except TypeError:  # a container without that constructor
        return values


def _collate_numpy(batch, first):
    import numpy

    if not isinstance(first, (numpy.ndarray, numpy.generic)):
        raise TypeError(f"default_collate: found {type(first)}")
    if first.dtype.kind not in "biuf":
        raise TypeError(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts "
            f"or lists; found array of {first.dtype}"
        )
    # One upload for the batch instead of one for each sample.
    return holdfast.from_numpy(numpy.stack(batch))
