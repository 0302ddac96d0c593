# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of public functions that write in place, of windows, and of a
few composites."""

import numpy as np
import scipy.spatial as spatial
import scipy.special as sp
from op_cases import case, nonzero, positive

small = positive / 4  # within (0, 1)


def written(op, *args):
    """The function on a tensor inside the graph; it returns that tensor."""

    def run(hf, a, *rest):
        b = a * 1
        assert getattr(hf, op)(b, *rest, *args) is b
        return b

    return run


for op, args, reference, *inputs in [
    ("arccos_", (), np.arccos, small),
    ("arcsin_", (), np.arcsin, small),
    ("arctan_", (), np.arctan, small),
    ("arccosh_", (), np.arccosh, small + 1.5),
    ("arcsinh_", (), np.arcsinh, small),
    ("arctanh_", (), np.arctanh, small),
    ("clamp_max_", (0.51,), lambda a: np.minimum(a, 0.51), nonzero),
    ("clamp_min_", (0.51,), lambda a: np.maximum(a, 0.51), nonzero),
    ("clip_", (-0.51, 0.51), lambda a: a.clip(-0.51, 0.51), nonzero),
    ("conj_physical_", (), np.conj, nonzero),
    ("deg2rad_", (), np.deg2rad, nonzero),
    ("rad2deg_", (), np.rad2deg, nonzero),
    ("fix_", (), np.trunc, nonzero * 0.9 + 0.04),
    ("frac_", (), lambda a: a - np.trunc(a), nonzero * 0.9 + 0.04),
    ("logit_", (), sp.logit, small),
    ("nan_to_num_", (), np.nan_to_num, nonzero),
    ("negative_", (), np.negative, nonzero),
    ("sinc_", (), np.sinc, nonzero),
    ("square_", (), np.square, nonzero),
    ("zero_", (), np.zeros_like, nonzero),
    ("xlogy_", (), sp.xlogy, nonzero, positive),
    ("addmv_", (), lambda a, m, v: a + m @ v, (3,), (3, 4), (4,)),
]:
    case(op, written(op, *args), reference, *inputs)
case(
    "ldexp_",
    written("ldexp_"),
    lambda a, n: a * 2.0**n,
    nonzero,
    np.array([1, -2, 0, 3]),
)

for name, arguments, reference in [
    ("bartlett_window", (), np.bartlett),
    ("blackman_window", (), np.blackman),
    ("kaiser_window", (9.0,), lambda n: np.kaiser(n, 9.0)),
]:
    case(
        name,
        lambda hf, n=name, a=arguments: getattr(hf, n)(7, False, *a),
        lambda f=reference: f(7),
    )
case("range", lambda hf: hf.range(1, 4, 0.5), lambda: np.arange(1, 4.25, 0.5))
case("resolve_neg", lambda hf, a: hf.resolve_neg(a), lambda a: a, (2, 3))
case(
    "linalg.diagonal",
    lambda hf, a: hf.linalg.diagonal(a, offset=1),
    lambda a: np.diagonal(a, 1, -2, -1),
    (2, 3, 4),
)
case("pdist", lambda hf, a: hf.pdist(a), spatial.distance.pdist, (4, 3))
