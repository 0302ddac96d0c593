# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A notebook's names, kept in its session: tensors, modules, optimizers, schedulers.

The tensors themselves are kept, so that what a cell later writes in place is there,
too. What stands around them, the modules' and optimizers' Python objects, is pickled
with references in the tensors' places, all in one stream: what names share, they share
after a restore. All of it changes at once on the daemon, or not at all.
"""

import io
import pickle
import threading

from holdfast import _C

# Names of what the session keeps: of this kernel, and of the one before it.
_NOW, _BEFORE = "notebook", "before"
_OBJECTS = "objects"
# While a cell runs, what it makes is looked for so often (seconds).
_LOOK_EVERY = 1.0


def is_kept(name, value):
    """Whether a name of a notebook's is kept."""
    from holdfast import nn, optim

    if name.startswith("_"):
        return False
    kinds = (_C.Tensor, nn.Module, optim.Optimizer, optim.lr_scheduler.LRScheduler)
    return isinstance(value, kinds)


class _Pickler(pickle.Pickler):
    """Leaves tensors out; `tensors` are they, in order."""

    def __init__(self, file):
        super().__init__(file, protocol=5)
        self.tensors = []
        self._places = {}

    def persistent_id(self, value):
        # Parameters and other subclasses are objects around a plain tensor.
        if type(value) is not _C.Tensor:
            return None
        place = self._places.setdefault(id(value), len(self.tensors))
        if place == len(self.tensors):
            self.tensors.append(value)  # which also keeps its id from being another's
        return place, bool(value.requires_grad)


class _Absent:
    """In the place of an object whose class is not there."""

    def __init__(self, *args, **kwargs):
        pass

    def __setstate__(self, state):
        pass


class _Unpickler(pickle.Unpickler):
    """Puts `tensors` back; `absent` gets the classes that are not there."""

    def __init__(self, file, tensors):
        super().__init__(file)
        self._tensors = tensors
        self.absent = []

    def persistent_load(self, reference):
        place, requires_grad = reference
        tensor = self._tensors[place]
        return tensor.requires_grad_() if requires_grad else tensor

    def find_class(self, module, name):
        try:
            return super().find_class(module, name)
        except (AttributeError, ImportError):
            self.absent.append(name)
            return type(name, (_Absent,), {})


class Namespace:
    """Keeps the names of `user_ns` in `session`, and brings a former kernel's back."""

    def __init__(self, session, user_ns):
        self._session = session
        self._names = user_ns
        self._lock = threading.Lock()
        self._kept_keys = set()
        self._last = None  # what was kept last, as far as it cannot change inside
        self._refused = {}
        self._stop = None
        self._before = self._take_over()

    # ---- keep

    def keep(self, settled=True):
        """Keeps the names as they are now. Returns {name: why not} of what cannot be
        kept and has not been told of before.

        settled    nothing else runs. Else a RuntimeError may be of what changes just
                   now, and is raised.
        """
        with self._lock:
            found = {n: v for n, v in list(self._names.items()) if is_kept(n, v)}
            if not self._changed(found):
                return {}
            file = io.BytesIO()
            pickler = _Pickler(file)
            refused = self._pickle(pickler, found, settled)
            tensors = dict(enumerate(pickler.tensors))
            self._replace(_NOW, tensors, file.getvalue())
            new = {n: why for n, why in refused.items() if self._refused.get(n) != why}
            self._refused = refused
            return new

    def _changed(self, found):
        """A tensor is what it is; what is in other objects is looked at each time."""
        identities = {name: id(value) for name, value in found.items()}
        plain = all(type(value) is _C.Tensor for value in found.values())
        same = plain and self._last is not None and identities == self._last[0]
        # The values, too: an id is another's once its object is gone.
        self._last = (identities, found) if plain else None
        return not same

    def _pickle(self, pickler, found, settled):
        """Streams (name, value) one after the other; returns {name: why not}."""
        refused = {}
        for name, value in found.items():
            # Tried aside first: half an object in the stream would spoil the rest.
            try:
                _Pickler(io.BytesIO()).dump(value)
            except Exception as error:
                if isinstance(error, RuntimeError) and not settled:
                    raise
                refused[name] = f"{type(error).__name__}: {error}"
                continue
            pickler.dump((name, value))
        return refused

    def _replace(self, prefix, tensors, data):
        import holdfast

        objects = holdfast.frombuffer(bytearray(data or b"\0"), dtype=holdfast.uint8)
        new = {f"{prefix}.{place}": tensor for place, tensor in tensors.items()}
        new[f"{prefix}.{_OBJECTS}"] = objects.clone()
        stale = self._kept_keys - new.keys()
        self._session._keep_all(
            [*new, *stale], [*new.values(), *[None] * len(stale)], False
        )
        self._kept_keys = set(new)

    # ---- while a cell runs

    def cell_begins(self):
        self._stop = threading.Event()
        threading.Thread(target=self._look, args=(self._stop,), daemon=True).start()

    def cell_ends(self):
        """Returns what keep() does."""
        if self._stop is not None:
            self._stop.set()
        return self.keep()

    def _look(self, stop):
        while not stop.wait(_LOOK_EVERY):
            try:
                self.keep(settled=False)
            except RuntimeError:
                # The cell changes what is looked at, or the session has ended, of which
                # the cell itself is told. What was kept stays.
                continue

    # ---- restore

    def _take_over(self):
        """What the kernel before this one kept goes out of the way; its names."""
        known = self._session._kept_names() if self._session.attached else []
        now = [name for name in known if name.startswith(_NOW + ".")]
        if f"{_NOW}.{_OBJECTS}" in now:
            kept = self._session.kept()
            moved = {_BEFORE + name.removeprefix(_NOW): kept[name] for name in now}
            stale = [n for n in known if n.startswith(_BEFORE + ".") and n not in moved]
            gone = [*now, *stale]
            self._session._keep_all(
                [*moved, *gone], [*moved.values(), *[None] * len(gone)], False
            )
            return set(moved)
        return {name for name in known if name.startswith(_BEFORE + ".")}

    def names_before(self):
        """The names of what restore() would bring back."""
        return [name for name, _, _ in self._load()]

    def restore(self):
        """(names that are back, {name: classes that are not there yet})."""
        back, absent = [], {}
        for name, value, missing in self._load():
            if missing:
                absent[name] = missing
            else:
                self._names[name] = value
                back.append(name)
        self.keep()
        if self._before and not absent:
            gone = sorted(self._before)
            self._session._keep_all(gone, [None] * len(gone), False)
            self._before = set()
        return back, absent

    def _load(self):
        if not self._before:
            return []
        kept = self._session.kept()
        data = kept[f"{_BEFORE}.{_OBJECTS}"].numpy().tobytes()
        tensors = {
            int(key): tensor
            for name, tensor in kept.items()
            if (key := name.removeprefix(_BEFORE + ".")).isdigit()
        }
        unpickler = _Unpickler(io.BytesIO(data), tensors)
        found = []
        while True:
            unpickler.absent.clear()
            try:
                name, value = unpickler.load()
            except EOFError:
                return found
            found.append((name, value, list(unpickler.absent)))
