# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The op cases of the functions with a code for each matrix, where all is well.

Other matrices: python_client/tests/test_linalg_codes.py.
"""

import numpy as np
from op_cases import case
from op_cases_linalg import T, np_packed, np_solve, np_spd, regular, spd

for shape in [(3, 3), (2, 2, 3, 3)]:
    x = regular(*shape)
    case("linalg.inv_ex", lambda hf, x: hf.linalg.inv_ex(x).inverse, np.linalg.inv, x)
    case(
        "linalg.lu_factor_ex", lambda hf, x: hf.linalg.lu_factor_ex(x).LU, np_packed, x
    )
    case("lu", lambda hf, x: hf.lu(x, get_infos=True)[0], np_packed, x)
    case(
        "linalg.cholesky_ex",
        lambda hf, x: hf.linalg.cholesky_ex(spd(hf, x)).L,
        lambda x: np.linalg.cholesky(np_spd(x)),
        x,
    )
for left in (True, False):
    case(
        "linalg.solve_ex",
        lambda hf, a, b, left=left: hf.linalg.solve_ex(a, b, left=left).result,
        lambda a, b, left=left: np_solve(a, b) if left else T(np_solve(T(a), T(b))),
        regular(2, 3, 3),
        (3, 2) if left else (4, 3),
        label=f" left={left}",
    )
