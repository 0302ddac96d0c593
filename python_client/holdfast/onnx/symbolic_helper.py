# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What packages import to describe their operators for an export that never
happens here."""

from holdfast.onnx import export


def parse_args(*arg_descriptors):
    """A decorator that changes nothing."""
    return lambda f: f


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'holdfast.onnx' has no attribute '{name}'")
    return export
