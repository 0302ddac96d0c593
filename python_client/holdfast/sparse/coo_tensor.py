# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The sparse tensor: indices, values and a size."""

import math

import holdfast
from holdfast import _C
from holdfast.errors import UnsupportedError
from holdfast.memory_formats import sparse_coo


Tensor = _C.Tensor

# What of Tensor's works on a sparse one as it is: it asks for the type, the
# device or the session.
_SHARED = """
    __class__ __dict__ __doc__ __hash__ __init__ __module__ __ne__ __eq__ __reduce__
    __setattr__ __weakref__ __getattribute__ device dtype is_cpu is_cuda is_quantized
    is_meta is_mkldnn is_mps is_nested is_sparse_csr is_xpu itemsize get_device
    element_size is_floating_point is_complex is_signed __init_subclass__ __new__
    __subclasshook__ __dir__ __sizeof__ _device_name _device_number
""".split()


class SparseTensor(Tensor):
    """A tensor of which only some elements are kept: the one at indices[:, i]
    is values[i], a number or a dense block; elements at equal indices add up.

    Made by torch.sparse_coo_tensor() and Tensor.to_sparse(). The object is a Tensor
    for isinstance(); ops that do not know it raise, and so do the methods that it
    does not have.
    """

    __torch_function__ = _C._disabled_torch_function_impl
    is_sparse = True
    layout = sparse_coo

    def __new__(cls, indices, values, size, coalesced=False):
        # What ops would see, if they took it: the values, for type and device.
        self = Tensor._make_subclass(cls, values.detach(), False)
        self.__dict__.update(
            _index=indices,
            _value=values,
            _size=_C.Size(size),
            _coalesced=bool(coalesced),
            _grad=None,
        )
        return self

    def __init__(self, *args):
        pass

    def __getattribute__(self, name):
        if name in _NAMES or not hasattr(Tensor, name):
            return object.__getattribute__(self, name)
        raise UnsupportedError(
            f"holdfast has no Tensor.{name} of sparse tensors; "
            "to_dense() makes one that has it."
        )

    def _with(self, values):
        return SparseTensor(self._index, values, self._size, self._coalesced)

    # ---- what it is

    @property
    def _version(self):
        """How often its values were written."""
        return self._value._version

    @property
    def shape(self):
        return self._size

    def size(self, dim=None):
        """Its size, or that of one dimension."""
        return self._size if dim is None else self._size[dim]

    def dim(self):
        """How many dimensions."""
        return len(self._size)

    ndimension = dim
    ndim = property(dim)

    def numel(self):
        """How many elements a dense tensor of this size has."""
        return math.prod(self._size)

    nelement = numel

    def __len__(self):
        return self._size[0]

    def sparse_dim(self):
        """How many dimensions the indices tell."""
        return self._index.size(0)

    def dense_dim(self):
        """How many dimensions every value has."""
        return self._value.dim() - 1

    def _nnz(self):
        return self._value.size(0)

    def is_coalesced(self):
        """Whether the indices are in order and each is there once."""
        return self._coalesced

    def indices(self):
        """[sparse_dim, nnz]; RuntimeError before coalesce()."""
        self._need_coalesced("indices")
        return self._index

    def values(self):
        """[nnz, ...]; RuntimeError before coalesce()."""
        self._need_coalesced("values")
        return self._value

    def _need_coalesced(self, what):
        if not self._coalesced:
            raise RuntimeError(
                f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() "
                "first"
            )

    def _indices(self):
        return self._index

    def _values(self):
        return self._value

    # ---- conversions

    def coalesce(self):
        """The same tensor with its indices in order and each once."""
        if self._coalesced:
            return self
        from holdfast.sorting import unique

        flat = self._flat()
        places, inverse = unique(flat, sorted=True, return_inverse=True)
        dense = tuple(self._value.shape[1:])
        zeros = holdfast.full((places.size(0), *dense), 0, dtype=self._value.dtype)
        values = holdfast.index_add(zeros, 0, inverse, self._value)
        rows, sizes = [], self._size[: self.sparse_dim()]
        for size in reversed(sizes):
            rows.append(holdfast.remainder(places, size))
            places = holdfast.floor_divide(places, size)
        indices = holdfast.stack(rows[::-1])
        return SparseTensor(indices, values, self._size, True)

    def _flat(self):
        """[nnz]: where every value would be among the rows of a dense tensor."""
        flat = None
        for d in range(self.sparse_dim()):
            row = holdfast.select(self._index, 0, d)
            flat = row if flat is None else flat * self._size[d] + row
        if flat is None:  # without a sparse dimension every value is the one
            flat = holdfast.full((self._nnz(),), 0, dtype=_C.int64)
        return flat

    def to_dense(self, dtype=None):
        """An ordinary tensor of this size."""
        sizes = tuple(self._size)
        rows = math.prod(sizes[: self.sparse_dim()])
        dense = tuple(self._value.shape[1:])
        zeros = holdfast.full((rows, *dense), 0, dtype=self._value.dtype)
        made = _C.ops.view(
            holdfast.index_add(zeros, 0, self._flat(), self._value), sizes
        )
        return made if dtype is None else _C.ops.to(made, dtype)

    def to_sparse(self, sparse_dim=None, **options):
        """This tensor."""
        if options.get("layout") not in (None, sparse_coo):
            raise UnsupportedError(f"holdfast has no layout {options['layout']}.")
        return self

    def to(self, *args, **kwargs):
        """Converted or moved: as Tensor.to()."""
        return self._moved(self._value.to(*args, **kwargs))

    def _moved(self, values):
        """With values that may be on another device: indices go along."""
        if values is self._value:
            return self
        index = _C.move_to(self._index, values._device_number)
        moved = self._with(values)
        moved.__dict__["_index"] = index
        return moved

    def type(self, dtype=None):
        """The name of its type, or it as another type."""
        if dtype is None:
            return self._value.type().replace("torch.", "torch.sparse.")
        return self._with(self._value.type(dtype))

    def cuda(self, *args, **kwargs):
        """Moved to the GPU."""
        return self._moved(self._value.cuda(*args, **kwargs))

    def clone(self, **options):
        """A copy, in the same graph."""
        return SparseTensor(
            holdfast.clone(self._index),
            holdfast.clone(self._value),
            self._size,
            self._coalesced,
        )

    def copy_(self, source, non_blocking=False):
        """Becomes a copy of a sparse tensor of the same size, in its own type."""
        if not isinstance(source, SparseTensor):
            raise TypeError(
                "copy_() between dense and sparse tensors is not supported; got "
                f"{type(source).__name__}"
            )
        if tuple(source.shape) != tuple(self._size):
            raise RuntimeError(
                f"copy_: sizes differ. Got {list(self._size)} and "
                f"{list(source.shape)}."
            )
        made = source.detach().to(self.dtype).clone()
        self._index, self._value = made._index, made._value
        self._coalesced = made._coalesced
        return self

    def __deepcopy__(self, memo):
        made = self.detach().clone().requires_grad_(self.requires_grad)
        memo[id(self)] = made
        return made

    def __reduce_ex__(self, protocol):
        return SparseTensor, (
            self._index,
            self._value.detach(),
            tuple(self._size),
            self._coalesced,
        )

    def __repr__(self, **options):
        pad = " " * 7

        def part(name, tensor):
            text = repr(tensor.detach()).replace(
                "\n", "\n" + pad + " " * (len(name) + 1)
            )
            return f"{name}={text}"

        words = [f"size={tuple(self._size)}", f"nnz={self._nnz()}"]
        if self.dtype is not _C.default_dtype():
            words.append(f"dtype={self.dtype}")
        words.append("layout=torch.sparse_coo")
        if self._value.grad_fn is not None:
            words.append(f"grad_fn={self._value.grad_fn!r}")
        elif self.requires_grad:
            words.append("requires_grad=True")
        lines = [part("indices", self._index), part("values", self._value)]
        return "tensor(" + f",\n{pad}".join([*lines, ", ".join(words)]) + ")"

    __str__ = __repr__

    def __format__(self, spec):
        return repr(self)

    # ---- gradients: those of the values

    @property
    def requires_grad(self):
        return self._value.requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted):
        self.requires_grad_(wanted)

    def requires_grad_(self, requires_grad=True):
        """Marks the values; returns self."""
        if self._value.is_leaf and not requires_grad:
            self._value = self._value.detach()
        elif requires_grad and not self._value.requires_grad:
            self._value = self._value.detach().requires_grad_()
        return self

    @property
    def is_leaf(self):
        return self._value.is_leaf

    @property
    def grad_fn(self):
        return self._value.grad_fn

    @property
    def grad(self):
        gradient = self._value.grad
        return None if gradient is None else self._with(gradient)

    @grad.setter
    def grad(self, gradient):
        self._value.grad = None if gradient is None else gradient.to_dense()

    def detach(self):
        """The same tensor outside the graph."""
        return self._with(self._value.detach())

    def detach_(self):
        """Takes this tensor out of the graph; returns it."""
        self._value = self._value.detach()
        return self

    @property
    def data(self):
        return self.detach()


def _conversion(name):
    def convert(self):
        return self._with(getattr(self._value, name)())

    convert.__name__ = name
    convert.__doc__ = f"Tensor.{name}()."
    setattr(SparseTensor, name, convert)


for _name in "bfloat16 bool cpu double float half int long short pin_memory".split():
    _conversion(_name)


def _refused(name):
    def refuse(self, *args, **kwargs):
        raise UnsupportedError(
            f"holdfast has no Tensor.{name} of sparse tensors; "
            "to_dense() makes one that has it."
        )

    refuse.__name__ = name
    return refuse


# Operators do not pass through __getattribute__. products.py puts those that
# there are in their places.
for _name in dir(Tensor):
    if _name[:2] == "__" and _name not in _SHARED and _name not in vars(SparseTensor):
        if callable(getattr(Tensor, _name)) and not hasattr(object, _name):
            setattr(SparseTensor, _name, _refused(_name))

_NAMES = set(_SHARED) | set(vars(SparseTensor)) | {"__reduce_ex__", "__repr__"}


def sparse_method(f=None, *, names=()):
    """Decorator: a method of sparse tensors, under f's name or `names`."""

    def register(f):
        for name in names or (f.__name__,):
            setattr(SparseTensor, name, f)
            _NAMES.add(name)
        return f

    return register(f) if f is not None else register


_C.set_sparse_type(SparseTensor)
