# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Elements at indices, read and written."""

import holdfast as hf
import torch
from holdfast import _C

from holdfast_torch.composites import declare, declare_holdfast as composite

_ops = _C.ops


def _key(indices):
    return tuple(slice(None) if i is None else i for i in indices)


def _where_it_is(tensor, indices):
    """Index tensors on the tensor's device: PyTorch lets those of the CPU index."""
    return [
        None if i is None else i.to(tensor.device, non_blocking=True) for i in indices
    ]


@declare("index.Tensor", "_unsafe_index.Tensor")
def index(self, indices):
    return _index(self, _where_it_is(self, indices))


@composite()
def _index(self, indices):
    return self[_key(indices)]


@declare("_index_put_impl_", "index_put_")
def index_put_(self, indices, values, accumulate=False, unsafe=False):
    if values.dtype != self.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{self.dtype} for the destination and {values.dtype} for the source."
        )
    values = values.to(self.device)
    return self.copy_(_index_put(self, _where_it_is(self, indices), values, accumulate))


@composite()
def _index_put(self, indices, values, accumulate):
    if accumulate:
        positions = _positions(self, indices)
        return self.index_put(positions, values, accumulate=True)
    result = self.clone()
    result[_key(indices)] = values
    return result


def _positions(self, indices):
    """Index tensors for every dimension, broadcast as indices are: where some are not
    given, or are masks, positions of the elements that they choose."""
    count = hf.arange(self.numel()).reshape(tuple(self.shape))
    chosen = count[_key(indices)]
    found, rest = [], chosen
    for size in reversed(self.shape):
        found.append(hf.remainder(rest, max(size, 1)))
        rest = hf.floor_divide(rest, max(size, 1))
    return tuple(reversed(found))


@declare("index_fill_.int_Scalar", "index_fill_.int_Tensor")
def index_fill_(self, dim, index, value):
    return self.copy_(_index_fill(self, dim, index, value))


@composite()
def _index_fill(self, dim, index, value):
    if isinstance(value, hf.Tensor):
        value = value.item()
    return self.index_fill(dim, index, value)


@declare("masked_scatter_")
def masked_scatter_(self, mask, source):
    return self.copy_(_masked_scatter(self, mask, source))


@composite()
def _masked_scatter(self, mask, source):
    return self.masked_scatter(mask, source)


@declare("put_")
def put_(self, index, source, accumulate=False):
    return self.copy_(_put(self, index, source, accumulate))


@composite()
def _put(self, index, source, accumulate):
    return hf.put(self, index, source, accumulate)


@declare("masked_fill_.Scalar", "masked_fill_.Tensor")
def masked_fill_(self, mask, value):
    if isinstance(value, torch.Tensor) and value.dim() != 0:
        raise RuntimeError(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
            f"with {value.dim()} dimension(s)."
        )
    if torch.is_complex(torch.as_tensor(value)) and not self.is_complex():
        raise RuntimeError(
            f"value cannot be converted to type {self.dtype} without overflow: {value}"
        )
    return self.copy_(torch.where(mask, value, self))


@composite("embedding_dense_backward")
def embedding_dense_backward(
    grad_output, indices, num_weights, padding_idx, scale_grad_by_freq
):
    width = grad_output.shape[-1]
    rows = grad_output.reshape(-1, width)
    places = indices.reshape(-1)
    if scale_grad_by_freq:
        counts = hf.bincount(places, minlength=num_weights)
        rows = rows / counts[places].to(rows.dtype).unsqueeze(1)
    if padding_idx >= 0:
        rows = rows * (places != padding_idx).to(rows.dtype).unsqueeze(1)
    zeros = hf.zeros((num_weights, width), dtype=rows.dtype)
    return _ops.index_add(zeros, 0, places, rows)


@declare("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(self, mask, value):
    shape = torch.broadcast_shapes(self.shape, mask.shape)
    rows = self.expand(shape).clone(memory_format=torch.contiguous_format)
    return masked_fill_(rows, mask, value)


@composite("embedding")
def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    if weight.dim() != 2:
        raise RuntimeError(f"'weight' must be 2-D. Got sizes {tuple(weight.shape)}.")
    rows = _ops.index_select(weight, 0, indices.reshape(-1))
    return rows.reshape(*indices.shape, *weight.shape[1:])


@composite("masked_select")
def masked_select(self, mask):
    return hf.masked_select(self, mask)


@composite("nonzero")
def nonzero(self):
    return _ops.nonzero(self)


@composite("take")
def take(self, index):
    return hf.take(self, index)


@composite("repeat_interleave.Tensor")
def repeat_interleave(repeats, *, output_size=None):
    places = hf.arange(repeats.shape[0])
    return hf.repeat_interleave(places, repeats, output_size=output_size)


@composite("index_add")
def index_add(self, dim, index, source, *, alpha=1):
    return hf.index_add(self, dim, index, source, alpha=alpha)


@composite("scatter.reduce", "scatter.value_reduce")
def scatter_reduced(self, dim, index, src, *, reduce):
    return hf.scatter(self, dim, index, src, reduce=reduce)


@composite("index_reduce")
def index_reduce(self, dim, index, source, reduce, *, include_self=True):
    return hf.index_reduce(self, dim, index, source, reduce, include_self=include_self)


@declare("embedding_renorm_")
def embedding_renorm_(self, indices, max_norm, norm_type):
    with torch.no_grad():
        places = indices.reshape(-1)
        used = self.index_select(0, places)
        norms = used.norm(norm_type, 1, True)
        scale = torch.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
        # A row used several times is written several times alike.
        return self.index_copy_(0, places, (used * scale).to(self.dtype))


@declare("unfold_backward")
def unfold_backward(grad_in, input_sizes, dim, size, step):
    if not input_sizes:  # a number is seen as one row of it
        return grad_in.sum(-1) if size else grad_in.new_zeros(())
    dim = dim % len(input_sizes)
    count = input_sizes[dim]
    places = torch.arange(count, device=grad_in.device).unfold(0, size, step)
    grad = grad_in.movedim(-1, dim + 1).flatten(dim, dim + 1)
    zeros = grad_in.new_zeros(input_sizes)
    return zeros.index_add(dim, places.reshape(-1), grad)
