# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Gradients, and gradients of gradients, of PyTorch's own samples in float64, as the
CPU's."""

import op_cases
import pytest


@pytest.mark.parametrize("transport, op", op_cases.cases("grad"))
def test_gradients(op_runners, transport, op):
    op_cases.check(op_runners, "grad", transport, op)


@pytest.mark.parametrize("transport, op", op_cases.cases("gradgrad"))
def test_gradients_of_gradients(op_runners, transport, op):
    op_cases.check(op_runners, "gradgrad", transport, op)
