# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Methods of Tensor that are written in Python: NumPy, copies, protocols."""

import copy as _copy
import weakref

from holdfast import _C
from holdfast._registry import function, method, overload
from holdfast.autograd import backward as _backward
from holdfast.autograd import backward_pass
from holdfast.memory_formats import strided
from holdfast.shapes import unbind

_ops = _C.ops
Tensor = _C.Tensor

# NumPy's operators on arrays leave tensors to Tensor's own.
Tensor.__array_priority__ = 1000


@method
def numpy(self, *, force=False):
    """The elements as a NumPy array; waits.

    Over shared memory the array is the tensor's own memory, at any size in the
    same time: writes to either are seen by both. Over gRPC this is so for memory of
    up to 256 KiB, which is compared before an op uses it; larger arrays are copies,
    and read-only: copy() them to write, or copy_() what they are to be.
    """
    if self.requires_grad:
        if not force:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. "
                "Use tensor.detach().numpy() instead."
            )
        self = _ops.detach(self)
    import numpy

    most = getattr(numpy, "MAXDIMS", 64)  # NumPy 2 has no such name
    if self.dim() > most:
        raise ValueError(
            f"NumPy {numpy.__version__} takes at most {most} dimensions. "
            f"Got {self.dim()}: merge some with reshape() first"
        )
    memory = mirrored_memory(self)
    if memory is None:
        return numpy.asarray(self._buffer())
    return numpy.ndarray(
        tuple(self.shape),
        self.dtype.name,
        memory,
        self.storage_offset() * self.itemsize,
        tuple(step * self.itemsize for step in self.stride()),
    )


def mirrored_memory(tensor):
    """The bytes of the tensor's storage in an array that follows it, and that it
    follows; None where there is no such array."""
    import numpy

    known = _C.mirror_of(tensor)
    if known is None:
        return None
    if isinstance(known, tuple):
        owner, offset, count = known
        return numpy.frombuffer(owner, numpy.uint8, count, offset)
    count = known // tensor.itemsize
    flat = _ops.as_strided(_ops.detach(tensor), (count,), (1,), 0)
    memory = numpy.array(numpy.asarray(flat._bytes()))
    _C.mirrored(memory, tensor)
    return memory


@method
def __array__(self, dtype=None, copy=None):
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(
                f"elements of {self.dtype} cannot become {dtype} without a copy"
            )
        return array.astype(dtype)
    return array.copy() if copy else array


@method
def __array_wrap__(self, array, context=None, return_scalar=False):
    """What NumPy's functions make of a tensor is a tensor, as in PyTorch."""
    return _C.as_tensor(array)


@function
def empty_numpy(shape, dtype=None):
    """An uninitialised NumPy array whose memory the daemon shares.

    from_numpy() of it (or of a view of it) makes a tensor without a copy. Over
    gRPC there is no shared memory and the array is an ordinary one.
    """
    import numpy

    dtype = dtype or _C.float32
    if not isinstance(dtype, _C.dtype):
        dtype = getattr(_C, numpy.dtype(dtype).name)
    if isinstance(shape, int):
        shape = (shape,)
    buffer = _C._empty_shared(tuple(shape), dtype)
    if buffer is None:
        return numpy.empty(shape, dtype.name)
    return numpy.asarray(buffer)


@method
def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds d(self)/d(leaf) to .grad of the leaves this tensor depends on."""
    _backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)


class _HookHandle:
    """What register_hook returns: `remove()` undoes it, once or as a context."""

    def __init__(self, tensor, hook):
        self._hook = hook
        self._tensor = weakref.ref(tensor)
        self.id = _C.register_hook(tensor, self._run)

    def _run(self, gradients):
        result = None if self._hook is None else self._hook(gradients[0])
        if result is not None and not isinstance(result, Tensor):
            raise TypeError(
                "expected Variable, but hook returned "
                f"'{type(result).__name__}' (a hook returns a Tensor or None)"
            )
        return (result,)

    def remove(self):
        """The hook is called no more."""
        tensor = self._tensor()
        if self._hook is not None and tensor is not None:
            _C.remove_hook(tensor, self.id)
        self._hook = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


@method
def register_hook(self, hook):
    """Backward calls `hook(gradient)` with this tensor's gradient.

    A tensor that it returns replaces the gradient. The backward waits while
    hooks run. Returns a handle with `remove()`.
    """
    if not self.requires_grad:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    return _HookHandle(self, hook)


@method
def register_post_accumulate_grad_hook(self, hook):
    """Backward calls `hook(self)` when this leaf's .grad has its new value.

    All such hooks run when the whole backward is done, in the order in which the
    gradients arrived; grad() calls none. Returns a handle with `remove()`.
    """
    if not self.requires_grad:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    if not self.is_leaf:
        raise RuntimeError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
        )
    leaf = weakref.ref(self)

    def call():
        tensor = leaf()
        if tensor is not None and handle._hook is not None:
            hook(tensor)

    def arrived(gradient):
        this = backward_pass.current()
        if this is not None and not this.is_grad:
            this.afterwards.append(call)

    handle = _HookHandle(self, arrived)
    return handle


@method
def __iter__(self):
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self, 0))


@method
def __contains__(self, element):
    if not isinstance(element, (Tensor, int, float)):
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, not {type(element)}"
        )
    return _ops.any(_ops.eq(self, element)).item()


@method
def __complex__(self):
    return complex(self.item())


@method
def __format__(self, spec):
    if self.dim() == 0:
        return format(self.item(), spec)
    return format(repr(self), spec)


@method
def __reversed__(self):
    return self if self.dim() == 0 else _ops.flip(self, (0,))


@method
def __copy__(self):
    """Another tensor over the same memory, a leaf."""
    twin = Tensor._make_subclass(type(self), self, self.requires_grad)
    twin.__dict__.update(self.__dict__)
    return twin


@method
def __deepcopy__(self, memo):
    known = memo.get(id(self))
    if known is not None:
        return known
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the "
            "deepcopy protocol at the moment."
        )
    result = Tensor._make_subclass(
        type(self), _ops.clone(_ops.detach(self)), self.requires_grad
    )
    memo[id(self)] = result
    if self.grad is not None:
        result.grad = _copy.deepcopy(self.grad, memo)
    result.__dict__.update(_copy.deepcopy(self.__dict__, memo))
    return result


def _rebuild(cls, data, dtype, shape, requires_grad, device=None):
    number = 0 if device is None else _C.device_number(device)
    tensor = _C._from_bytes(data, shape, getattr(_C, dtype), number)
    if cls is not Tensor:
        return Tensor._make_subclass(cls, tensor, requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


@method
def __reduce_ex__(self, protocol):
    if not self.is_leaf:
        raise RuntimeError(
            "Only leaf tensors can be pickled. Use tensor.detach() first."
        )
    data = memoryview(_ops.detach(self).contiguous()._bytes()).tobytes()
    arguments = (
        type(self),
        data,
        self.dtype.name,
        tuple(self.shape),
        self.requires_grad,
        *((str(self.device),) if self._device_number else ()),
    )
    # The attributes are the object's state, which may refer to the object.
    return _rebuild, arguments, self.__dict__ or None


@method
def zero_(self):
    """Sets every element to 0."""
    return self.fill_(0)


@method
def bernoulli_(self, p=0.5, *, generator=None):
    """Sets every element to 1 with probability p, else to 0."""
    if not isinstance(p, Tensor):
        p = _ops.full(tuple(self.shape), float(p))
    return self.copy_(_ops.bernoulli(p, generator=generator))


# What random_() without limits stays below.
_RANDOM_LIMITS = {
    _C.bool: 2,
    _C.uint8: 2**8,
    _C.int8: 2**7,
    _C.int16: 2**15,
    _C.int32: 2**31,
    _C.int64: 2**63 - 1,
    _C.bfloat16: 2**8 + 1,
    _C.float16: 2**11 + 1,
    _C.float32: 2**24 + 1,
    _C.float64: 2**53 + 1,
}


@method
def random_(self, low=0, high=None, *, generator=None, **limits):
    """Fills with uniform random integers in [low, high), or [0, low); PyTorch's
    keywords are `from` and `to`.

    Without limits: of all integers from 0 on that the type holds exactly.
    """
    low, high = limits.pop("from", low), limits.pop("to", high)
    if limits:
        raise TypeError(f"random_() got unexpected keywords: {sorted(limits)}")
    if high is None:
        low, high = 0, low or _RANDOM_LIMITS[self.dtype]
    numbers = _ops.randint(low, high, tuple(self.shape), generator=generator)
    return self.copy_(numbers)


@overload("uniform")
def _uniform(input, low=0.0, high=1.0, *, generator=None, inplace_=False, **bounds):
    low, high = bounds.pop("from", low), bounds.pop("to", high)
    if bounds:
        raise TypeError(f"uniform_() got an unexpected argument {set(bounds)}")
    return Tensor.uniform_(input, low, high, generator=generator)


@overload("bernoulli")
def _bernoulli(input, p=None, *, generator=None, out=None, inplace_=False):
    if p is not None:
        input = _ops.full(tuple(input.shape), float(p))
    return _ops.bernoulli(input, generator=generator, out=out)


@method
def pin_memory(self):
    """This tensor: the daemon's memory is already shared."""
    return self


@method
def is_pinned(self):
    return False


@method
def share_memory_(self):
    """This tensor, which other processes may have too; waits.

    Its elements stay where they are. Processes that multiprocessing forks have it
    at once; others get it as an argument or through a queue.
    """
    from holdfast.multiprocessing.reductions import share_in_place

    share_in_place(self)
    return self


@method
def is_shared(self):
    """Whether other processes may have this tensor's memory."""
    return self._is_shared


Tensor.is_sparse = False
Tensor.is_quantized = False
Tensor.is_meta = property(
    lambda self: self._device_number < 0, doc="Whether it has sizes, but no data."
)
# Devices that no daemon has.
for _name in ("maia", "mtia", "vulkan", "xla"):
    setattr(Tensor, f"is_{_name}", False)
Tensor.layout = strided
Tensor.names = property(lambda self: (None,) * self.dim())
