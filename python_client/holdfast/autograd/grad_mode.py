# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Grad mode: whether ops of this thread are recorded for backward.

Each class is a context manager and a decorator, with or without parentheses.
"""

import functools

from holdfast import _C


_GENERATOR = 0x20  # inspect.CO_GENERATOR, without importing inspect


class _GradMode:
    """Sets the mode for a block; nests and may be entered again."""

    def __init__(self, mode):
        self._mode = mode
        self._outer = []

    def __enter__(self):
        self._outer.append(_C.set_grad_mode(self._mode))
        return self

    def __exit__(self, *error):
        _C.set_grad_mode(self._outer.pop())

    def __call__(self, f):
        if isinstance(f, type):
            raise TypeError("decorate the methods of a class, not the class")
        code = getattr(f, "__code__", None)
        if code is not None and code.co_flags & _GENERATOR:
            return self._wrap_generator(f)

        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            with self._copy():
                return f(*args, **kwargs)

        return wrapper

    def _copy(self):
        return _GradMode(self._mode)

    def _wrap_generator(self, f):
        # The mode holds while the generator's own code runs, not while its
        # user's does.
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            generator = f(*args, **kwargs)
            value, error = None, None
            while True:
                try:
                    with self._copy():
                        if error is not None:
                            item = generator.throw(error)
                        else:
                            item = generator.send(value)
                except StopIteration as stop:
                    return stop.value
                error = None
                try:
                    value = yield item
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as thrown:
                    error = thrown

        return wrapper


class no_grad(_GradMode):
    """Ops are not recorded."""

    def __new__(cls, f=None):
        self = super().__new__(cls)
        if f is None:
            return self
        _GradMode.__init__(self, False)
        return self(f)

    def __init__(self, f=None):
        super().__init__(False)


class enable_grad(_GradMode):
    """Ops are recorded, inside no_grad() too."""

    def __new__(cls, f=None):
        self = super().__new__(cls)
        if f is None:
            return self
        _GradMode.__init__(self, True)
        return self(f)

    def __init__(self, f=None):
        super().__init__(True)


class inference_mode(_GradMode):
    """Ops are not recorded, and what they make never takes part in gradients.

    Outside of the mode such a tensor (and any view of it) can't be written in
    place nor made to require gradients: RuntimeError. A clone() of it can.
    inference_mode(False) ends the mode for a block.
    """

    def __new__(cls, mode=True):
        if not callable(mode):
            return super().__new__(cls)
        self = super().__new__(cls)
        inference_mode.__init__(self)
        return self(mode)

    def __init__(self, mode=True):
        super().__init__(not mode)

    def __enter__(self):
        inference = not self._mode
        before = _C.set_inference_mode(inference)
        # Leaving a mode that was on brings gradients back, as in PyTorch.
        grad = not inference if inference or before else _C.is_grad_enabled()
        self._outer.append((_C.set_grad_mode(grad), before))
        return self

    def __exit__(self, *error):
        grad, inference = self._outer.pop()
        _C.set_grad_mode(grad)
        _C.set_inference_mode(inference)

    def _copy(self):
        return inference_mode(not self._mode)


def is_inference_mode_enabled():
    """Whether this thread is in inference mode."""
    return _C.is_inference_mode()


class set_grad_enabled(_GradMode):
    """Sets the mode at once; as a context manager until the block ends."""

    def __init__(self, mode):
        super().__init__(bool(mode))
        self._before = _C.set_grad_mode(self._mode)

    def __enter__(self):
        _C.set_grad_mode(self._mode)
        self._outer.append(self._before)
        return self

    def __call__(self, f):
        _C.set_grad_mode(self._before)
        return super().__call__(f)
