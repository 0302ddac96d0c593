# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Pillow, imported when an image is first needed."""

import importlib


def pillow(module="Image"):
    """Pillow's module of that name; ImportError says how to install it."""
    try:
        return importlib.import_module(f"PIL.{module}")
    except ImportError as error:
        raise ImportError(
            f"holdfast.vision handles images with Pillow, whose PIL.{module} cannot be "
            f"imported ({error}). Install it: apt install python3-pil, or "
            "pip install pillow."
        ) from error
