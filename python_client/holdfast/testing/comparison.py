# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""assert_close, by PyTorch's name and tolerances."""

from holdfast import _C

_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}


def assert_close(
    actual,
    expected,
    *,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_dtype=True,
    msg=None,
):
    """Raises AssertionError unless the tensors are close; waits.

    Sequences and mappings of tensors are compared item by item.
    """
    options = dict(rtol=rtol, atol=atol, equal_nan=equal_nan, msg=msg)
    options["check_dtype"] = check_dtype
    if isinstance(actual, (list, tuple)) and _holds_tensors(actual):
        if len(actual) != len(expected):
            raise AssertionError(
                "The length of the sequences mismatch: "
                f"{len(actual)} != {len(expected)}"
            )
        for a, b in zip(actual, expected):
            assert_close(a, b, **options)
        return
    if isinstance(actual, dict):
        if set(actual) != set(expected):
            raise AssertionError(
                "The keys of the mappings do not match: "
                f"{sorted(set(actual) ^ set(expected), key=str)} are in one only."
            )
        for key in actual:
            assert_close(actual[key], expected[key], **options)
        return
    actual, expected = _C.as_tensor(actual), _C.as_tensor(expected)
    if actual.shape != expected.shape:
        raise AssertionError(
            "The values for attribute 'shape' do not match: "
            f"{actual.shape} != {expected.shape}."
        )
    if check_dtype and actual.dtype is not expected.dtype:
        raise AssertionError(
            "The values for attribute 'dtype' do not match: "
            f"{actual.dtype} != {expected.dtype}."
        )
    if (rtol is None) != (atol is None):
        raise ValueError("rtol and atol must both be given, or neither")
    if rtol is None:
        rtol, atol = _TOLERANCES.get(actual.dtype, (0.0, 0.0))
    wide = _C.complex128 if actual.dtype.is_complex else _C.float64
    left, right = actual.detach().to(wide), expected.detach().to(wide)
    if left.allclose(right, rtol, atol, equal_nan):
        return
    close = left.isclose(right, rtol, atol, equal_nan)
    wrong = (~close).sum().item()
    # Where one is infinite or NaN there is no distance to report.
    distance = (left - right).abs()
    finite = distance.isfinite() & ~close
    largest = distance.where(finite, 0.0).amax().item()
    raise AssertionError(
        msg
        or f"Tensor-likes are not close! Mismatched elements: {wrong} / "
        f"{left.numel()}. Greatest absolute difference: {largest} (up to {atol} "
        f"allowed, relative {rtol})."
    )


def _holds_tensors(values):
    return any(isinstance(v, (_C.Tensor, list, tuple, dict)) for v in values)


def assert_allclose(
    actual, expected, rtol=None, atol=None, equal_nan=True, msg="", **options
):
    """assert_close() by its old name: NaNs are equal, types may differ."""
    assert_close(
        actual,
        _C.as_tensor(expected),
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )
