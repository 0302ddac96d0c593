# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The tests of data-apis/array-api-tests that fail for holdfast.array_api, and why.
PyTorch (array-api-compat's torch) fails each of them as well: tensors have PyTorch's
own operators and indices."""

# `x // y` and `x % y` of floating point numbers are PyTorch's.
_FLOOR = """
    isfinite(x1_i) and x1_i < 0 and x2_i is +infinity) -> -0
    isfinite(x1_i) and x1_i > 0 and x2_i is -infinity) -> -0
    x1_i is +infinity and isfinite(x2_i) and x2_i < 0) -> -infinity
    x1_i is +infinity and isfinite(x2_i) and x2_i > 0) -> +infinity
    x1_i is -infinity and isfinite(x2_i) and x2_i < 0) -> +infinity
    x1_i is -infinity and isfinite(x2_i) and x2_i > 0) -> -infinity
"""
_REMAINDER = """
    x1_i is +0 and x2_i < 0) -> -0
    x1_i is -0 and x2_i > 0) -> +0
"""


def _cases(functions, conditions):
    return {
        f"test_{kind}[{name}({condition.strip()}]"
        for kind, name in functions
        for condition in conditions.strip().splitlines()
    }


FAILURES = {
    "test_getitem",  # x[::-1]: no negative steps
    *_cases(
        [
            ("binary", "floor_divide"),
            ("binary", "__floordiv__"),
            ("iop", "__ifloordiv__"),
        ],
        _FLOOR,
    ),
    *_cases(
        [("binary", "remainder"), ("binary", "__mod__"), ("iop", "__imod__")],
        _REMAINDER,
    ),
}
