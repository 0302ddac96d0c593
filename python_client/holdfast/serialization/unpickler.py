# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Unpicklers of checkpoints: one that runs nothing of the file's, and Python's own."""

import _compat_pickle
import pickle

import holdfast

from . import FormatError, names, safe_set, trusted
from .rebuild import TENSOR_FUNCTIONS, StorageType


class UnsafeError(FormatError, pickle.UnpicklingError):
    """The file names something that load does not run for it."""


# What damaged or hostile pickles make an unpickler raise.
DAMAGE = (
    pickle.UnpicklingError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    UnicodeError,
    ValueError,
)


class SafeUnpickler(pickle._Unpickler):
    """Finds, calls and changes nothing but what safe_set and the program allow.

    `strict` leaves out modules, optimizers and the like. The unpickler written in
    Python, since each of its steps can be checked, and its memo is a dict: numbers
    in the file reserve no memory.
    """

    dispatch = dict(pickle._Unpickler.dispatch)

    def __init__(self, file, storage_of, strict, **options):
        super().__init__(file, **options)
        self._storage_of = storage_of
        self._strict = strict
        self._callable = {}  # by id: (value, may be called)

    def persistent_load(self, pid):
        return self._storage_of(pid)

    def find_class(self, module, name):
        if self.proto < 3:  # pickles of these protocols have Python 2's names
            names_now = _compat_pickle.NAME_MAPPING
            module, name = names_now.get((module, name), (module, name))
            module = _compat_pickle.IMPORT_MAPPING.get(module, module)
        value = trusted.find(module, name)
        if value is None:
            value = safe_set.find(module, name)
        called = value is not None
        if value is None and not self._strict:
            value = safe_set.find_own(module, name)
        if value is None:
            raise self._refusal(module, name)
        self._callable[id(value)] = value, called
        return value

    def _refusal(self, module, name):
        full = f"{module}.{name}"
        return UnsafeError(
            f"[load] Weights only load failed: the file names {full}, which is not in "
            "the safe set. If you trust the file, load it with weights_only=False, "
            "which runs what it says; or allow this name alone with "
            f"holdfast.serialization.add_safe_globals([{full}])."
        )

    def _may_call(self, function):
        return self._callable.get(id(function), (None, False))[1]

    def load_reduce(self):
        arguments = self.stack.pop()
        function = self.stack[-1]
        if not self._may_call(function):
            raise UnsafeError(f"[load] the file calls {_named(function)}.")
        self.stack[-1] = function(*arguments)

    def _make(self, cls, arguments, keywords):
        if not isinstance(cls, type) or id(cls) not in self._callable:
            raise UnsafeError(f"[load] the file makes an object of {_named(cls)}.")
        if not self._may_call(cls) and (arguments or keywords):
            raise UnsafeError(
                f"[load] the file makes an object of {_named(cls)} with arguments."
            )
        return cls.__new__(cls, *arguments, **keywords)

    def load_newobj(self):
        arguments = self.stack.pop()
        self.stack.append(self._make(self.stack.pop(), arguments, {}))

    def load_newobj_ex(self):
        keywords, arguments = self.stack.pop(), self.stack.pop()
        self.stack.append(self._make(self.stack.pop(), arguments, keywords))

    def load_build(self):
        target = self.stack[-2]
        if type(target).__module__ == "numpy":
            from . import safe_numpy

            safe_numpy.set_state(target, self.stack.pop())
        elif safe_set.is_buildable(target) or trusted.is_allowed(type(target)):
            super().load_build()
        else:
            raise UnsafeError(f"[load] the file changes a {_named(type(target))}.")

    def _instantiate(self, klass, args):
        # INST and OBJ of protocol 0: a call.
        if not self._may_call(klass):
            raise UnsafeError(f"[load] the file calls {_named(klass)}.")
        self.append(klass(*args))

    def load_unknown(self):
        raise UnsafeError("[load] the file uses pickle's extension registry.")

    def load_bytearray8(self):
        (size,) = pickle.unpack("<Q", self.read(8))
        data = self.read(min(size, 1 << 62))
        if len(data) != size:
            raise pickle.UnpicklingError("pickle data was truncated")
        self.append(bytearray(data))

    dispatch[pickle.REDUCE[0]] = load_reduce
    dispatch[pickle.NEWOBJ[0]] = load_newobj
    dispatch[pickle.NEWOBJ_EX[0]] = load_newobj_ex
    dispatch[pickle.BUILD[0]] = load_build
    dispatch[pickle.BYTEARRAY8[0]] = load_bytearray8
    for _code in (pickle.EXT1, pickle.EXT2, pickle.EXT4):
        dispatch[_code[0]] = load_unknown


def _named(value):
    module = getattr(value, "__module__", "")
    return f"{module}.{getattr(value, '__qualname__', repr(value))}"


class TrustingUnpickler(pickle.Unpickler):
    """Python's, with PyTorch's names for what is ours: runs what the file says."""

    def __init__(self, file, storage_of, **options):
        super().__init__(file, **options)
        self._storage_of = storage_of

    def persistent_load(self, pid):
        return self._storage_of(pid)

    def find_class(self, module, name):
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        found = safe_set.find(module, name)
        if found is not None:
            return found
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return _load_from_bytes
        try:
            return names.own_value(module, name)
        except (ImportError, AttributeError):
            raise FormatError(
                f"[load] the file names {module}.{name}, which holdfast has not."
            ) from None


def _load_from_bytes(data):
    import io

    return holdfast.load(io.BytesIO(data), weights_only=False)


def unpickler(file, storage_of, weights_only, **options):
    """The one that load's `weights_only` asks for."""
    if weights_only is False:
        return TrustingUnpickler(file, storage_of, **options)
    return SafeUnpickler(file, storage_of, strict=bool(weights_only), **options)


class _Nothing:
    """Takes whatever a pickle does to it."""

    def __init__(self, *args, **kwargs):
        pass

    def __setstate__(self, state):
        pass

    def __setitem__(self, key, value):
        pass

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def __call__(self, *args, **kwargs):
        return self


class StorageLister(pickle._Unpickler):
    """Reads a pickle for the storages that it names, and makes nothing of it.

    `found`: {key: dtype}.
    """

    def __init__(self, file, **options):
        super().__init__(file, **options)
        self.found = {}

    def find_class(self, module, name):
        found = safe_set.find(module, name)
        return found if isinstance(found, StorageType) else _Nothing

    def persistent_load(self, pid):
        kind, storage_type, key, *_ = pid
        if kind == "storage" and isinstance(storage_type, StorageType):
            self.found[key] = storage_type.dtype
        return _Nothing()

    def get_extension(self, code):
        self.append(_Nothing)


__all__ = [
    "DAMAGE",
    "SafeUnpickler",
    "StorageLister",
    "TENSOR_FUNCTIONS",
    "TrustingUnpickler",
    "UnsafeError",
    "unpickler",
]
