# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""./dev bench accounts, in its short form: memory has no timing that a busy machine
could spoil."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(120)
def test_what_the_process_holds_is_on_the_ledger(tmp_path):
    from holdfast.daemon import find_daemon

    subprocess.run(
        [
            *(sys.executable, ROOT / "benchmarks/accounts", "--quick"),
            *("--seconds", "3", "--only", "mixed", "--json", tmp_path / "r"),
        ],
        check=True,
        env={**os.environ, "HOLDFAST_DAEMON": str(find_daemon())},
    )
    results = json.loads((tmp_path / "r").read_text())["results"]
    assert results
    for result in results:
        assert result["met"] is not False, result
