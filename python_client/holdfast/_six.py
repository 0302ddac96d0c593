# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What PyTorch had for Python 2 and 3 at once; older packages still import it."""

import collections.abc as container_abcs  # noqa: F401

inf, nan = float("inf"), float("nan")
string_classes = (str, bytes)
int_classes = int
PY3 = True
