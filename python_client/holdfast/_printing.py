# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""repr() of tensors, in PyTorch's layout.

Large tensors are summarised on the daemon: only the corners that are printed
travel to the client.
"""

import math

from holdfast import _C
from holdfast._registry import function

_ops = _C.ops
Tensor = _C.Tensor


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode = None


_options = _Options()
_PROFILES = {
    "default": (4, 1000, 3, 80),
    "short": (2, 1000, 2, 80),
    "full": (4, math.inf, 3, 80),
}


@function
def set_printoptions(
    precision=None,
    threshold=None,
    edgeitems=None,
    linewidth=None,
    profile=None,
    sci_mode=None,
):
    """How tensors print; None leaves a setting as it is."""
    if profile is not None:
        (
            _options.precision,
            _options.threshold,
            _options.edgeitems,
            _options.linewidth,
        ) = _PROFILES[profile]
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            setattr(_options, name, value)
    _options.sci_mode = sci_mode


def _leaves(nested):
    if not isinstance(nested, list):
        yield nested
        return
    for item in nested:
        yield from _leaves(item)


class _Formatter:
    """One format and width for all elements that are shown. Zeros and what is not
    finite do not count for the width, as in PyTorch."""

    def __init__(self, values, floating):
        self.floating = floating
        self.integral = self.scientific = False
        self.width = 1
        values = list(values)
        if not floating:
            self.width = max((len(str(v)) for v in values), default=1)
            return
        counted = [v for v in values if v and math.isfinite(v)]
        self._choose([abs(v) for v in counted])
        self.width = max((len(self._text(v)) for v in counted), default=1)
        if _options.sci_mode is not None:
            self.scientific = _options.sci_mode

    def _choose(self, sizes):
        if not sizes:
            # All zero or not finite: PyTorch prints "0."
            self.integral = True
            return
        low, high = min(sizes), max(sizes)
        self.integral = all(v == math.ceil(v) for v in sizes)
        self.scientific = high / low > 1000.0 or high > 1.0e8
        if not self.integral and low < 1.0e-4:
            self.scientific = True

    def _text(self, value):
        if not self.floating:
            return str(value)
        if self.scientific:
            return f"{value:.{_options.precision}e}"
        if not math.isfinite(value):
            return str(value)
        if self.integral:
            return f"{value:.0f}."
        return f"{value:.{_options.precision}f}"

    def __call__(self, value):
        return self._text(value).rjust(self.width)


class _ComplexFormatter:
    """The parts, each with a format of its own; the imaginary one signed."""

    def __init__(self, values):
        self.real = _Formatter([v.real for v in values], True)
        self.imag = _Formatter([abs(v.imag) for v in values], True)
        self.width = self.real.width + self.imag.width + 2

    def __call__(self, value):
        sign = "-" if math.copysign(1.0, value.imag) < 0 else "+"
        imag = self.imag._text(abs(value.imag))
        return f"{self.real(value.real)}{sign}{imag}j"


def _corners(tensor):
    """What is shown of a large tensor: both ends of every dimension."""
    edge = _options.edgeitems
    for dim in range(tensor.dim()):
        size = tensor.size(dim)
        if size > 2 * edge:
            tensor = _ops.cat(
                [
                    _ops.slice(tensor, dim, 0, edge),
                    _ops.slice(tensor, dim, size - edge, size),
                ],
                dim,
            )
    return tensor


def _line(values, shape, indent, formatter):
    """The innermost dimension, wrapped at the line's width."""
    edge = _options.edgeitems
    texts = [formatter(v) for v in values]
    if shape[0] > len(values):
        texts = texts[:edge] + [" ..."] + texts[edge:]
    per_line = max(1, (_options.linewidth - indent) // (formatter.width + 2))
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _block(values, shape, indent, formatter):
    if not shape:
        return formatter(values)
    if len(shape) == 1:
        return _line(values, shape, indent, formatter)
    parts = [_block(v, shape[1:], indent + 1, formatter) for v in values]
    if shape[0] > len(values):
        edge = _options.edgeitems
        parts = parts[:edge] + ["..."] + parts[edge:]
    gap = "," + "\n" * (len(shape) - 1) + " " * (indent + 1)
    return "[" + gap.join(parts) + "]"


def _history(tensor):
    grad_fn = tensor.grad_fn
    if grad_fn is not None:
        return f"grad_fn=<{grad_fn.name().rsplit('::')[-1]}>"
    return "requires_grad=True" if tensor.requires_grad else None


def _default_types():
    """What prints without its name."""
    real = _C.default_dtype()
    imaginary = _C.complex128 if real is _C.float64 else _C.complex64
    return (real, imaginary, _C.int64, _C.bool)


def tensor_text(tensor, prefix="tensor("):
    """The whole repr, with `prefix` in front."""
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    default = tensor.dtype in _default_types()
    shape = tuple(tensor.shape)
    if tensor.is_meta:
        body = "..."
        suffixes.append(f"size={shape}")
        if tensor.dtype is not _C.default_dtype():
            suffixes.append(f"dtype={tensor.dtype}")
    elif tensor.numel() == 0:
        body = "[]"
        if len(shape) != 1:
            suffixes.append(f"size={shape}")
        if tensor.dtype is not _C.default_dtype():
            suffixes.append(f"dtype={tensor.dtype}")
    else:
        if not default:
            suffixes.append(f"dtype={tensor.dtype}")
        shown = _ops.detach(tensor)
        if tensor.numel() > _options.threshold:
            shown = _corners(shown)
        values = shown.tolist()
        if tensor.dtype.is_complex:
            formatter = _ComplexFormatter(list(_leaves(values)))
        else:
            formatter = _Formatter(_leaves(values), tensor.is_floating_point())
        body = _block(values, shape, len(prefix), formatter)
    history = _history(tensor)
    if history is not None:
        suffixes.append(history)
    return _with_suffixes(prefix + body, suffixes, len(prefix))


def _with_suffixes(text, suffixes, indent):
    last = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if last + len(suffix) + 2 > _options.linewidth:
            text += ",\n" + " " * indent + suffix
            last = indent + len(suffix)
        else:
            text += ", " + suffix
            last += len(suffix) + 2
    return text + ")"


def _repr(self, *, tensor_contents=None):
    # A subclass shows its own name, unless it prints itself.
    name = type(self).__name__
    return tensor_text(self, "tensor(" if name == "Tensor" else f"{name}(")


Tensor.__repr__ = _repr
