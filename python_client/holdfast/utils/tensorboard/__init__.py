# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""SummaryWriter: event files for TensorBoard, by the installed `tensorboard`."""

from .writer import SummaryWriter

__all__ = ["SummaryWriter"]
