# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Small questions and synonyms that PyTorch has as functions or methods."""

import builtins

from holdfast import _C
from holdfast._registry import FUNCTIONS, both, function, inplace_of, method

_ops = _C.ops
Tensor = _C.Tensor


@both
def is_nonzero(input):
    """Whether the one element is not zero; RuntimeError for any other number."""
    if input.numel() != 1:
        raise RuntimeError(
            f"Boolean value of Tensor with {input.numel()} values is ambiguous"
        )
    return bool(input.item())


@both
def is_same_size(input, other):
    """Whether both have the same shape."""
    return tuple(input.shape) == tuple(other.shape)


@both
def is_signed(input):
    """Whether the elements' type has negative numbers."""
    return input.dtype.is_signed


@both
def is_neg(input):
    """False: negation is never lazy here."""
    return False


@both
def is_inference(input):
    """Whether the tensor's memory was made in inference mode."""
    return input._is_inference


@both
def resolve_neg(input):
    """The tensor: negation is never lazy here."""
    return input


@method
def data_ptr(self):
    """The address of the first element, where this process maps the tensor's memory:
    over shared memory, on a CPU. Else 0, as without elements.

    It waits, and the address is good until the memory dies. Until then each op on that
    memory is waited for, as with numpy(): `is_set_to()` compares places without that.
    """
    return 0 if self.is_meta else self._address()


@method
def is_set_to(self, tensor):
    """Whether both show the same elements of the same memory. Never waits."""
    return (
        self._storage_id == tensor._storage_id
        and self.storage_offset() == tensor.storage_offset()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
    )


@method
def get_device(self):
    """The GPU's number, -1 on the CPU."""
    return self.device.index or 0 if self.device.type == "cuda" else -1


@method
def to_dense(self, dtype=None):
    """The tensor: it is not sparse."""
    return self if dtype is None else _ops.to(self, dtype)


@method
def to_sparse(self, sparse_dim=None, **options):
    """A sparse tensor of the elements that are not zero; `sparse_dim`: of blocks over
    the dimensions after that many. Gradients reach this tensor."""
    from holdfast.sparse.construction import to_sparse

    return to_sparse(self, sparse_dim, **options)


@method
def sparse_mask(self, mask):
    """The elements where the sparse tensor `mask` has entries, as a sparse tensor."""
    from holdfast.sparse import sparse_coo_tensor

    places = mask.coalesce().indices()
    return sparse_coo_tensor(places, self[tuple(places)], self.shape)


def _shape_as_tensor(input):
    """The sizes as an int64 tensor."""
    return _C.tensor(list(input.shape), dtype=_C.int64)


FUNCTIONS["_shape_as_tensor"] = _shape_as_tensor


@method
def untyped_storage(self):
    """The tensor's memory, a torch.UntypedStorage: its size, address and bytes."""
    from holdfast.storage import UntypedStorage

    return UntypedStorage._of(self)


@method
def storage(self):
    """The tensor's memory as elements of its type, a torch.TypedStorage."""
    from holdfast.storage import TypedStorage

    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@method
def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Makes this tensor show the memory of `source`, a tensor of the same type or a
    storage; without it, nothing. With `size`: the elements of that memory from
    `storage_offset` on. Returns self."""
    if source is None:
        self.data = self.new_empty((0,))
        return self
    if not isinstance(source, _C.Tensor):
        source = source._as(self.dtype)
        size = tuple(source.shape) if size is None else size
    shown = source.detach()
    if size is not None:
        if stride is None:
            stride, step = [], 1
            for length in reversed(size):
                stride.insert(0, step)
                step *= builtins.max(length, 1)
        shown = _ops.as_strided(shown, tuple(size), tuple(stride), storage_offset)
    elif storage_offset or stride:
        raise TypeError("set_() takes storage_offset and stride with a size")
    self.data = shown
    return self


@method
def resize(self, *sizes):
    """reshape() to as many elements; deprecated, warns."""
    import warnings

    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    return self.reshape(*sizes)


@method
def coalesce(self):
    """RuntimeError: the tensor is not sparse."""
    raise RuntimeError(
        "coalesce expected sparse coordinate tensor layout but got Strided"
    )


@method
def prelu(self, weight):
    """nn.functional.prelu()."""
    from holdfast.nn.functional import prelu

    return prelu(self, weight)


@method
def hardshrink(self, lambd=0.5):
    """nn.functional.hardshrink()."""
    return _ops.hardshrink(self, lambd)


@function
def fill(input, value):
    """A tensor like input with `value` everywhere."""
    return _ops.clone(input).fill_(value)


@method
def fill_diagonal_(self, fill_value, wrap=False):
    """Writes a number onto the main diagonal; with wrap, of a tall matrix again
    after each block of columns and one row."""
    shape = tuple(self.shape)
    if len(shape) < 2:
        raise RuntimeError(
            f"fill_diagonal_: dimensions must larger than 1. Got {list(shape)}."
        )
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError(
            "fill_diagonal_: all dimensions of input must be of equal length. "
            f"Got {list(shape)}."
        )
    if 0 in shape:
        return self
    step, count = sum(self.stride()), min(shape)
    if wrap and len(shape) == 2 and shape[0] > shape[1]:
        rows, columns = shape
        index = _ops.arange(0, rows * columns, columns + 1)
        row = _ops.floor_divide(index, columns)
        self.index_put_(
            (row, _ops.remainder(index, columns)),
            _ops.full((), fill_value, dtype=self.dtype),
        )
        return self
    _ops.as_strided(self, (count,), (step,), self.storage_offset()).fill_(fill_value)
    return self


@function
def constant_pad_nd(input, pad, value=0):
    """nn.functional.pad() with a number."""
    return _ops.constant_pad(input, tuple(pad), value)


@function(out=True)
def range(start=0, end=None, step=1, **options):
    """Values start, start + step, ... up to end, which is included; float32."""
    from holdfast.creation import arange

    if end is None:
        start, end = 0, start
    if step == 0 or (end - start) * step < 0:
        raise RuntimeError(
            "upper bound and larger bound inconsistent with step sign. "
            f"Got range({start}, {end}, {step})."
        )
    options.setdefault("dtype", _C.default_dtype())
    count = int((end - start) / step) + 1
    return arange(0, count, 1, **options) * step + start


@function
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """as_tensor(); with copy, of memory of its own."""
    tensor = _C.as_tensor(obj, dtype=dtype, device=device)
    if copy and tensor is obj:
        tensor = _ops.clone(tensor).detach()
    return tensor.requires_grad_() if requires_grad else tensor


@function
def frexp(input):
    """(mantissa, exponent) with input = mantissa * 2**exponent, |mantissa| in
    [0.5, 1); exponents are int32."""
    if not input.is_floating_point():
        raise RuntimeError(
            f"torch.frexp() only supports floating-point dtypes. Got {input.dtype}."
        )
    wide = _ops.to(input.detach(), _C.float64)
    size = _ops.abs(wide)
    normal = _ops.logical_and(_ops.isfinite(size), _ops.gt(size, 0))
    exponent = _ops.floor(_ops.log2(_ops.where(normal, size, 0.5))) + 1
    # The logarithm may be a rounding off at powers of two.
    half = _ops.exp2(exponent - 1)
    safe = _ops.where(normal, size, 0.5)
    exponent = exponent + _ops.to(_ops.ge(safe / 2, half), _C.float64)
    exponent = exponent - _ops.to(_ops.lt(safe, _ops.exp2(exponent - 1)), _C.float64)
    exponent = _ops.where(normal, exponent, 0.0)
    # In two steps: one factor alone overflows for subnormal numbers.
    half = _ops.floor(exponent / 2)
    mantissa = input
    for part in (half, exponent - half):
        mantissa = mantissa * _ops.to(_ops.exp2(-part), input.dtype)
    return mantissa, _ops.to(exponent, _C.int32)


Tensor.frexp = frexp


def _hermitian(self):
    """A matrix transposed and conjugated; a number conjugated."""
    if self.dim() not in (0, 2):
        raise RuntimeError(
            "tensor.H is only supported on matrices (2-D tensors). Got "
            f"{self.dim()}-D tensor. For batches of matrices, consider using tensor.mH"
        )
    return self.mH


Tensor.H = property(_hermitian)

for _name in ("is_xpu", "is_ipu", "is_mps", "is_mkldnn", "is_sparse_csr", "is_nested"):
    setattr(Tensor, _name, False)
for _name, _target in {"unsafe_chunk": "chunk", "unsafe_split": "split"}.items():
    FUNCTIONS[_name] = FUNCTIONS.get(_target, getattr(Tensor, _target))
    setattr(Tensor, _name, getattr(Tensor, _target))

# In-place forms, and in-place forms as functions, that nobody else defines.
_INPLACE = """
    bitwise_not conj_physical deg2rad eq frac ge greater greater_equal gt le less
    less_equal logical_and logical_not logical_or logical_xor lt nan_to_num ne
    not_equal rad2deg sgn xlogy
"""
_FUNCTIONS = """
    addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ clamp_max_ clamp_min_
    clip_ conj_physical_ deg2rad_ detach_ fix_ frac_ i0_ index_put_ ldexp_ logit_
    nan_to_num_ negative_ rad2deg_ sinc_ square_ xlogy_ zero_
"""
for _name in _INPLACE.split():
    if not hasattr(Tensor, _name + "_"):
        inplace_of(getattr(Tensor, _name), _name)
for _name in _FUNCTIONS.split():
    FUNCTIONS.setdefault(_name, getattr(Tensor, _name))
