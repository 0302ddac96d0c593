# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""For code that runs for one session in the process of all (ops/check.h)."""

# Needs //ops:check among the dependencies. Kernels of the CPU share loops between
# threads with ParallelFor, which hands on what a thread throws.
CHECKED_ABSL = [
    "-isystem",
    "ops/checked",
]
