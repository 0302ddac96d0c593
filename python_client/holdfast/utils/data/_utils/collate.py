# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""How samples become a batch."""

from collections.abc import Mapping, Sequence

import holdfast

_WANTED = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
    "lists; found "
)


def default_collate(batch):
    """Stacks a list of samples along a new first dimension.

    Tensors and NumPy arrays are stacked, numbers become a tensor (floats
    float64, ints int64, bools bool), strings stay a list; dicts, tuples and lists
    are collated element by element. TypeError for anything else, RuntimeError for
    samples of different sizes.
    """
    return collate_with(batch, _to_tensor)


def default_convert(data):
    """NumPy arrays in `data`, however nested, become tensors; the rest stays.

    What a DataLoader does with single samples (batch_size=None).
    """
    if isinstance(data, (holdfast.Tensor, str, bytes)):
        return data
    if _of_numpy(data):
        import numpy

        if isinstance(data, numpy.ndarray) and data.dtype.kind in "SUO":
            return data
        return holdfast.as_tensor(data)
    if isinstance(data, Mapping):
        return _rebuilt(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return type(data)(*map(default_convert, data))
    if isinstance(data, Sequence):
        return _rebuilt(data, list(map(default_convert, data)))
    return data


def collate_with(batch, put):
    """default_collate with `put(array)` in the place of from_numpy.

    `put` gets a function that stacks: put(stack, shape, dtype), which calls
    stack(out) once, with an empty NumPy array of that shape and dtype.
    """
    first = batch[0]
    if isinstance(first, holdfast.Tensor):
        return holdfast.stack(list(batch), 0)
    if _of_numpy(first):
        return _stacked_arrays(batch, first, put)
    if isinstance(first, (bool, float, int)):
        return _numbers(batch, first, put)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return _rebuilt(
            first, {key: collate_with([s[key] for s in batch], put) for key in first}
        )
    if _is_namedtuple(first):
        return type(first)(*(collate_with(part, put) for part in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return _rebuilt(first, [collate_with(part, put) for part in zip(*batch)])
    raise TypeError(f"{_WANTED}{type(first)}")


def _to_tensor(stack, shape, dtype):
    import numpy

    # One upload for the batch instead of one for each sample.
    array = numpy.empty(shape, dtype)
    stack(array)
    return holdfast.from_numpy(array)


def _of_numpy(value):
    return type(value).__module__ == "numpy" and type(value).__name__ != "dtype"


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _rebuilt(like, values):
    """`values` in a container of the type of `like`; a tuple's become a list."""
    if isinstance(like, tuple) or type(like) in (list, dict):
        return values
    try:
        return type(like)(values)
    except TypeError:  # a container without that constructor
        return values


def _stacked_arrays(batch, first, put):
    import numpy

    if not isinstance(first, (numpy.ndarray, numpy.generic)):
        raise TypeError(f"{_WANTED}{type(first)}")
    if first.dtype.kind not in "biufc":
        raise TypeError(f"{_WANTED}array of {first.dtype}")
    for i, array in enumerate(batch):
        if array.shape != first.shape:
            raise RuntimeError(
                "stack expects each tensor to be equal size, but got "
                f"{list(first.shape)} at entry 0 and {list(array.shape)} at entry {i}"
            )

    def stack(out):
        numpy.stack(batch, out=out, casting="unsafe")

    dtype = numpy.result_type(*{array.dtype for array in batch})
    return put(stack, (len(batch), *first.shape), dtype)


def _numbers(batch, first, put):
    import numpy

    array = numpy.asarray(batch, numpy.float64 if isinstance(first, float) else None)
    if array.dtype == numpy.float64 and not isinstance(first, float):
        array = array.astype(numpy.float32)  # floats among ints, as tensor() has it

    def fill(out):
        out[...] = array

    return put(fill, array.shape, array.dtype)
