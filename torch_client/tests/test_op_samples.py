# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Results of PyTorch's own samples of its operators, as the CPU's."""

import op_cases
import pytest


@pytest.mark.parametrize("transport, op", op_cases.cases("float32"))
def test_float32(op_runners, transport, op):
    op_cases.check(op_runners, "float32", transport, op)


@pytest.mark.parametrize("transport, op", op_cases.cases("bfloat16"))
def test_bfloat16(op_runners, transport, op):
    op_cases.check(op_runners, "bfloat16", transport, op)


@pytest.mark.parametrize("transport, op", op_cases.cases("int64"))
def test_int64(op_runners, transport, op):
    op_cases.check(op_runners, "int64", transport, op)
