# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The example notebook: its cells as programs, the kernel killed where it says so."""

import json
import re
from pathlib import Path

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples/pytorch.ipynb"
# What a killed kernel was doing: it was idle, and had said what it did.
IDLE = "\nimport time\nprint('idle', flush=True)\ntime.sleep(600)\n"


def cells():
    """(code before the kernel is to be killed, code after it), cell by cell."""
    before, after, killed = [], [], False
    for cell in json.loads(NOTEBOOK.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            killed = killed or "kill the kernel" in source
        else:
            (after if killed else before).append(source)
    return before, after


def numbers(line):
    return [float(text) for text in re.findall(r"\d+\.\d+", line)]


def test_the_notebook_goes_on_after_its_kernel_was_killed(daemon, transport, start):
    env = {"HOLDFAST_ADDRESS": daemon.address(transport)}
    before, after = cells()
    assert len(before) == 4 and len(after) == 3
    kernel = start("\n".join(before) + IDLE, env=env)
    said = kernel.lines(4)
    assert said[0] == "device holdfast:0 goes on: False" and said[3] == "idle", said
    pretrained, tuned = numbers(said[1]), numbers(said[2])
    assert pretrained[-1] < pretrained[0] and tuned[-1] < tuned[0]
    kernel.kill()
    kernel = start("\n".join(before[:2] + after), env=env)
    status, out, err = kernel.finish()
    assert status == 0, err
    lines = out.splitlines()
    assert lines[0] == "device holdfast:0 goes on: True"
    assert max(numbers(lines[1])) < tuned[0] and len(numbers(lines[1])) == 3
    assert lines[2].startswith("the tensors") and len(lines[2]) == 31
