# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.compiler: programs run as they are written, so its marks change nothing."""

from holdfast.missing import module_getattr


def disable(fn=None, recursive=True):
    """fn itself; also a decorator with arguments."""
    return fn if fn is not None else lambda f: f


allow_in_graph = assume_constant_result = disable


def is_compiling():
    """False."""
    return False


is_dynamo_compiling = is_compiling


def reset():
    """Nothing."""


__getattr__ = module_getattr("torch.compiler")
