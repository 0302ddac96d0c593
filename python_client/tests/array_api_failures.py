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


# Which fail depends on what Hypothesis draws.
MAY_FAIL = {
    # x[::-1]: no negative steps.
    "test_getitem",
    "test_setitem",
    # A mask of 0 elements for an axis of 1.
    "test_getitem_masking",
    # Operators promote as PyTorch's: beside an array a 0-d one does not count.
    *(
        f"test_{name}[{form}]"
        for name, method in {
            "add": "add",
            "bitwise_and": "and",
            "bitwise_left_shift": "lshift",
            "bitwise_or": "or",
            "bitwise_right_shift": "rshift",
            "bitwise_xor": "xor",
            "divide": "truediv",
            "equal": "eq",
            "floor_divide": "floordiv",
            "greater": "gt",
            "greater_equal": "ge",
            "less": "lt",
            "less_equal": "le",
            "multiply": "mul",
            "not_equal": "ne",
            "pow": "pow",
            "remainder": "mod",
            "subtract": "sub",
        }.items()
        for form in (f"__{method}__(x1, x2)", f"__i{method}__(x1, x2)")
    ),
}
FAILURES = {
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
