# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Errors of functions that run as another's op: they name the function and the shapes
that the caller gave.

What has one dimension runs as images of one row, [N, C, L] as [N, C, 1, L].
"""

import re

# The op that a function runs as, and what its message calls the argument "input".
_OPS = re.compile(r"\b(conv[23]d_backward_input|conv2d|max_pool2d|avg_pool2d)(?![\w.])")
_ROW_ARGUMENT = re.compile(r"\b(stride|padding|dilation|kernel_size)=\[-?\d+,(-?\d+)\]")
_ROW_NUMBERS = (
    (re.compile(r"\(1 x (\d+)\)"), r"(\1)"),  # sizes of images and kernels
    (re.compile(r"\((\d+)x1x(\d+)\)"), r"(\1x\2)"),  # sizes with channels
    (re.compile(r"but got 1 and (-?\d+)"), r"but got \1"),  # strides
)


def _replace_shape(text, shape, own):
    for between in (", ", ","):
        listed = between.join(map(str, shape))
        text = text.replace(f"[{listed}]", f"[{between.join(map(str, own))}]")
    return text


def in_own_words(error, name, tensors, row):
    """Changes the error's message to speak of the function `name` and of `tensors` as
    they are; with `row`, the op had them with a dimension of 1 before the last."""
    text = _OPS.sub(name, str(error))
    if name.startswith("conv_transpose"):
        text = re.sub(r"\binput_size=\[[^]]*\], ", "", text)
        text = re.sub(r"\bgrad\b", "input", text)
    if row:
        for tensor in tensors:
            own = tuple(tensor.shape)
            shape = own[:-1] + (1,) + own[-1:]
            text = _replace_shape(text, shape, own)
            if len(own) == 2:  # the op had a batch of one
                text = _replace_shape(text, (1, *shape), own)
        text = _ROW_ARGUMENT.sub(r"\1=[\2]", text)
        for pattern, own in _ROW_NUMBERS:
            text = pattern.sub(own, text)
    error.args = (text,)
