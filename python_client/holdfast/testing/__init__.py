# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.testing: comparing tensors, and making them for tests."""

from holdfast.missing import module_getattr
from holdfast.testing.comparison import assert_allclose, assert_close
from holdfast.testing.creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

__getattr__ = module_getattr("torch.testing")
