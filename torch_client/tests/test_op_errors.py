# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Calls that PyTorch refuses: the same exceptions as the CPU's."""

import op_cases
import pytest


@pytest.mark.parametrize("transport, op", op_cases.cases("errors"))
def test_errors(op_runners, transport, op):
    op_cases.check(op_runners, "errors", transport, op)
