# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a program of this folder and prints, as the last line, the seconds it took:
`python timed.py NAME ARGUMENT`. Start and imports are not in them."""

import importlib
import os
import sys
import time

import torch


def main():
    if "OMP_NUM_THREADS" in os.environ:
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    program = importlib.import_module(sys.argv[1])
    sys.argv = sys.argv[1:]
    start = time.perf_counter()
    program.main()
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main()
