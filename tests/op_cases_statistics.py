# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of quantiles and their like."""

import numpy as np
from op_cases import case, distinct

x = distinct((3, 5))
nans = np.array([[1.0, np.nan, 3.0, 2.5], [5.0, 4.0, 6.0, 7.0], [np.nan] * 4])
qs = np.array([0.0, 0.3, 0.55, 1.0])

for how in ("linear", "lower", "higher", "midpoint", "nearest"):
    for dim in (None, 0, 1):
        case(
            "quantile",
            lambda hf, a, h=how, d=dim: hf.quantile(a, 0.35, d, interpolation=h),
            lambda a, h=how, d=dim: np.quantile(a, 0.35, d, method=h),
            x,
            label=f" {how} dim={dim}",
        )
    case(
        "quantile",
        lambda hf, a, q, h=how: hf.quantile(a, q, 1, True, interpolation=h),
        lambda a, q, h=how: np.quantile(a, q, 1, method=h, keepdims=True),
        x,
        qs,
        grad=(0,),
        label=f" several {how}",
    )
    case(
        "nanquantile",
        lambda hf, a, q, h=how: hf.nanquantile(a, q, 1, interpolation=h),
        lambda a, q, h=how: np.nanquantile(a, q, 1, method=h),
        nans,
        qs,
        grad=(),
        label=f" {how}",
    )
case(
    "quantile",
    lambda hf, a, q: hf.quantile(a, q, 1),
    lambda a, q: np.quantile(a, q, 1),
    nans,
    qs,
    grad=(),
    label=" nan",
)
case("nanquantile", lambda hf, a: hf.nanquantile(a, 0.5), np.nanmedian, x)
case(
    "quantile",
    lambda hf, a: a.quantile(0.5, keepdim=True),
    lambda a: np.quantile(a, 0.5, keepdims=True),
    (2, 1, 3),
)


def renorm_reference(a):
    size = np.sqrt((a**2).sum((1, 2), keepdims=True))
    return a * np.where(size > 2.0, 2.0 / (size + 1e-7), 1.0)


case("renorm", lambda hf, a: a.renorm(2, 0, 2.0), renorm_reference, (3, 2, 2))
