# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/ops.md: every public function, and which checks the op cases run
on it.

    ./dev python tests/ops_page.py
"""

import collections
import pathlib

from all_op_cases import CASES

from holdfast import reference

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "ops.md"
HEAD = """# Functions

Every public function of `holdfast`, `holdfast.nn.functional`, `holdfast.linalg`,
`holdfast.fft` and `holdfast.special`, and the checks that the op cases
(`tests/op_cases*.py`) run on it: **f** forward against NumPy or SciPy, **g** gradient
against finite differences in float64, **2** second derivatives too; each case also
runs over both transports with equal results. A function without a mark is covered
by a test of its own, or by its synonym's. A *primitive* is a row of the op table; a
*composite* is made of such.

Written by `./dev python tests/ops_page.py`; a test fails when it is out of date.

{count} functions, {primitives} primitives, {checked} with op cases.

| function | kind | checks | what it does |
|---|---|---|---|
"""


def marks():
    """Function name -> its checks, such as "fg2"."""
    found = collections.defaultdict(set)
    for case in CASES:
        name = case.op
        found[name].add("f")
        if case.grad:
            found[name].add("g")
            if case.second:
                found[name].add("2")
    return found


def page():
    functions, checks = reference.functions(), marks()
    lines = []
    for f in functions:
        short = f["name"].rsplit(".", 1)[-1]
        # A row that only its namespace shows (nn.functional.gelu).
        own = (
            checks.get(f["name"])
            or checks.get(short)
            or checks.get(f["name"].replace(".", "_"))
        )
        text = "".join(m for m in "fg2" if m in (own or ()))
        doc = f["doc"].split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        lines.append(f"| `{f['name']}` | {f['kind']} | {text} | {doc} |")
    checked = sum(line.split("|")[3].strip() != "" for line in lines)
    head = HEAD.format(
        count=len(functions),
        primitives=sum(f["kind"] == "primitive" for f in functions),
        checked=checked,
    )
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
