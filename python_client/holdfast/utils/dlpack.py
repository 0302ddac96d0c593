# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""DLPack by the names of torch.utils.dlpack."""

from holdfast.array_protocols import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
