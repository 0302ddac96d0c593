# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Which of PyTorch's operators get a kernel."""

import holdfast_torch  # noqa: F401
import torch
from holdfast_torch import registration, schemas


def test_operators_are_those_of_aten():
    # Others have the same names; which came last depended on what was imported.
    operators = schemas.operators()
    assert len(operators) > 2500
    assert {s.name.partition("::")[0] for s in operators.values()} == {"aten"}
    others = {s.name for s in torch._C._jit_get_all_schemas()}
    assert "prim::abs" in others
    assert operators["abs"].arguments[0].type.kind() == "TensorType"


def test_no_row_is_lost_to_another_name():
    assert {"abs", "add.Tensor", "mul.Tensor", "exp"} <= registration.REGISTERED.rows
