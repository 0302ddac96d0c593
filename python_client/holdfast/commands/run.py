# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Runs a program written for PyTorch, unchanged: in its process `import torch`
means holdfast."""

from holdfast import run

HELP = "run a PyTorch program on the daemon"
add_arguments = run.add_arguments
main = run.run
