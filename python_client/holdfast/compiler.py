# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.compiler: programs run as they are written, so its marks change nothing.

What compiled programs are saved as or made of is not there: real PyTorch as the client
has it (docs/compatibility.md).
"""

import contextlib

from holdfast.missing import module_getattr
from holdfast.settings import compile as compile  # noqa: F401


def disable(fn=None, recursive=True, *, reason=None):
    """fn itself; also a decorator with arguments."""
    return fn if fn is not None else lambda f: f


allow_in_graph = assume_constant_result = disable


def nonstrict_trace(traceable_fn):
    """The function itself."""
    return traceable_fn


def nested_compile_region(fn=None, **options):
    """fn itself; also a decorator with arguments."""
    return fn if fn is not None else lambda f: f


def wrap_numpy(fn):
    """`fn` of tensors where it is written for NumPy's arrays: arguments and results
    are converted."""
    import functools

    import numpy

    from holdfast import Tensor, from_numpy
    from holdfast.utils._pytree import tree_map, tree_map_only

    @functools.wraps(fn)
    def with_tensors(*args, **kwargs):
        args, kwargs = tree_map_only(Tensor, lambda t: t.numpy(), (args, kwargs))
        return tree_map(
            lambda a: from_numpy(a) if isinstance(a, numpy.ndarray) else a,
            fn(*args, **kwargs),
        )

    return with_tensors


def is_compiling():
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset():
    """Nothing."""


def cudagraph_mark_step_begin():
    """Nothing: the daemon records what repeats by itself."""


class set_stance(contextlib.ContextDecorator):
    """Nothing, at once or for a block: every stance is "force_eager" here. RuntimeError
    for a stance that PyTorch has not."""

    _STANCES = (
        "default",
        "force_eager",
        "eager_on_recompile",
        "fail_on_recompile",
        "eager_then_compile",
        "aot_eager_then_compile",
    )

    def __init__(
        self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None
    ):
        if stance not in self._STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def list_backends(exclude_tags=()):
    """None of them: an empty list."""
    return []


__getattr__ = module_getattr("torch.compiler")
