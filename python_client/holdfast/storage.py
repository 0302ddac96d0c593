# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.storage: a tensor's memory as an object. It lies on the daemon, and lives as
long as a tensor or a storage of it does."""

from holdfast import _C
from holdfast.errors import UnsupportedError
from holdfast.missing import error_of, module_getattr

__all__ = ["TypedStorage", "UntypedStorage"]


class UntypedStorage:
    """The bytes of a tensor and of all its views: Tensor.untyped_storage().

    UntypedStorage(n): n bytes of new memory. Indexing and tolist() give bytes, and
    wait; nbytes() does not.
    """

    is_sparse = is_sparse_csr = False

    def __init__(self, size=0, *, device=None):
        self._tensor = _C.ops.empty((size,), dtype=_C.uint8, device=device)

    @classmethod
    def _of(cls, tensor):
        self = cls.__new__(cls)
        self._tensor = tensor.detach()
        return self

    def _as(self, dtype):
        """All of the memory as a tensor in one dimension."""
        tensor = self._tensor
        whole = tensor.as_strided((self.nbytes() // tensor.itemsize,), (1,), 0)
        return whole if dtype is tensor.dtype else whole.view(dtype)

    def nbytes(self):
        """Its size in bytes."""
        known = self._tensor._storage_bytes
        return self._tensor.nbytes if known < 0 else known

    size = __len__ = nbytes

    def element_size(self):
        """1: it is bytes."""
        return 1

    def data_ptr(self):
        """Its address where this process maps it, as Tensor.data_ptr(); else 0."""
        return self._as(self._tensor.dtype).data_ptr() if len(self) else 0

    @property
    def device(self):
        """Where it lies."""
        return self._tensor.device

    @property
    def is_cuda(self):
        """Whether that is a GPU."""
        return self._tensor.is_cuda

    def get_device(self):
        """The GPU's number, -1 on the CPU."""
        return self._tensor.get_device()

    def is_shared(self):
        """Whether other sessions may have it."""
        return self._tensor.is_shared()

    def is_pinned(self, device=None):
        """False."""
        return False

    def share_memory_(self):
        """Lets other processes have it, as Tensor.share_memory_(); returns self."""
        self._tensor.share_memory_()
        return self

    def untyped(self):
        """Itself."""
        return self

    def clone(self):
        """New memory with the same bytes."""
        return UntypedStorage._of(self._as(_C.uint8).clone())

    def copy_(self, source, non_blocking=None):
        """Takes the bytes of a storage of the same size; returns self."""
        self._as(_C.uint8).copy_(source._as(_C.uint8))
        return self

    def fill_(self, value):
        """Sets each byte; returns self."""
        self._as(_C.uint8).fill_(value)
        return self

    def cpu(self):
        """Itself, or a copy on the CPU."""
        return self.to(device="cpu")

    def cuda(self, device=None, non_blocking=False):
        """Itself, or a copy on a GPU."""
        return self.to(device="cuda" if device is None else device)

    def to(self, *, device, non_blocking=False):
        """Itself, or a copy on the device."""
        moved = self._as(_C.uint8).to(device)
        here = moved._device_number == self._tensor._device_number
        return self if here else UntypedStorage._of(moved)

    def resizable(self):
        """False: see resize_()."""
        return False

    def resize_(self, size):
        """Refused but for the size that it has: UnsupportedError."""
        if size != len(self):
            raise UnsupportedError(
                f"[resize_] the daemon's memory keeps its size of {len(self)} bytes. "
                f"Got {size}. Make another tensor, or assign to `tensor.data`."
            )
        return self

    def tolist(self):
        """The bytes as ints; waits."""
        return self._as(_C.uint8).tolist()

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, index):
        if isinstance(index, slice):
            return UntypedStorage._of(self._as(_C.uint8)[index].clone())
        return self._as(_C.uint8)[index].item()

    def __setitem__(self, index, value):
        self._as(_C.uint8)[index] = value

    def __eq__(self, other):
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return self._tensor._storage_id == other._tensor._storage_id

    def __hash__(self):
        return hash(self._tensor._storage_id)

    @property
    def _cdata(self):
        return self._tensor._storage_id

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise error_of("torch.UntypedStorage", name)

    def __repr__(self):
        return (
            f"[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"
        )


class TypedStorage:
    """An UntypedStorage as elements of one type: Tensor.storage()."""

    is_sparse = False

    def __init__(self, *, wrap_storage, dtype, device=None):
        self._untyped_storage, self.dtype = wrap_storage, dtype

    def untyped(self):
        """The memory as bytes."""
        return self._untyped_storage

    def _as(self, dtype):
        return self._untyped_storage._as(dtype)

    def size(self):
        """How many elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size

    def element_size(self):
        """Bytes of an element."""
        return self.dtype.itemsize

    def tolist(self):
        """The elements; waits."""
        return self._as(self.dtype).tolist()

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, index):
        found = self._as(self.dtype)[index]
        return found.item() if found.dim() == 0 else found.tolist()

    def __setitem__(self, index, value):
        self._as(self.dtype)[index] = value

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._untyped_storage, name)

    def __repr__(self):
        return f"[torch.storage.TypedStorage(dtype={self.dtype}) of size {len(self)}]"


__getattr__ = module_getattr("torch.storage")
