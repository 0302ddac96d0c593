# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.storage: a tensor's memory has no object of its own here."""

from holdfast.missing import module_getattr

__getattr__ = module_getattr("torch.storage")
