# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""For code that runs for one session in the process of all (ops/check.h)."""

# Needs //ops:check among the dependencies. Kernels do without: no exception may
# leave the loops that they share between threads.
CHECKED_ABSL = [
    "-isystem",
    "ops/checked",
]
