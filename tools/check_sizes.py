# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Keeps source files small: `check_sizes.py FILE...`.

A file over the soft cap is pointed out; one over the hard cap is an error.
Tables (`.def`) are as long as what they list, so they are not counted.
"""

import sys

SOFT_CAP = 400
HARD_CAP = 800
SOURCES = (".cc", ".h", ".cu", ".cuh", ".proto", ".py", ".pyi", ".bzl", ".bazel")


def main(paths):
    too_long = False
    for path in paths:
        if not path.endswith(SOURCES):
            continue
        with open(path, encoding="utf-8") as file:
            lines = sum(1 for _ in file)
        if lines > HARD_CAP:
            print(f"{path}: error: {lines} lines, over {HARD_CAP}. Split it.")
            too_long = True
        elif lines > SOFT_CAP:
            print(f"{path}: warning: {lines} lines, over {SOFT_CAP}.")
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
