# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""functional_call, by the name that it had before torch.func."""

from holdfast.func.modules import functional_call

__all__ = ["functional_call"]
