# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Operators of ONNX's opset 9: names to import, refused when called."""

from holdfast.onnx.symbolic_helper import __getattr__  # noqa: F401
