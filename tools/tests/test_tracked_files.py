# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Git tracks sources, not what was built from them."""

import subprocess

from workspace import ROOT


def test_no_tracked_file_is_an_ignored_one():
    # `git add -f` takes what .gitignore names, and git says nothing of it later.
    listing = subprocess.check_output(
        ["git", "ls-files", "-ci", "--exclude-per-directory=.gitignore"],
        cwd=ROOT,
        text=True,
    )
    assert listing.splitlines() == []
