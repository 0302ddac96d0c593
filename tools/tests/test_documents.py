# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What documents list is all that there is."""

import re
import subprocess

from workspace import ROOT

READ = re.compile(r'(?:getenv|Environment|environ(?:\.get)?)[([]"(HOLDFAST_[A-Z_]+)"')


def test_every_variable_of_a_program_is_in_the_table():
    listing = subprocess.check_output(
        ["git", "ls-files", "client", "proto", "python_client/src"]
        + ["python_client/holdfast", "server/exec"],
        cwd=ROOT,
        text=True,
    )
    read = set()
    for name in listing.splitlines():
        if name.endswith((".cc", ".h", ".py")) and "_test." not in name:
            read |= set(READ.findall((ROOT / name).read_text()))
    read = {name for name in read if not name.startswith("HOLDFAST_TEST_")}
    assert len(read) > 8
    text = (ROOT / "docs/operating.md").read_text()
    table = text.partition("What a program takes from its environment:")[2]
    rows = [
        row for row in table.partition("## Trust")[0].splitlines() if row[:1] == "|"
    ]
    listed = set(re.findall(r"`(HOLDFAST_[A-Z_]+)`", "\n".join(rows)))
    assert read - listed == set()
