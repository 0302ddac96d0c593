# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""deploy/slurm: a job's daemon comes and goes, and never costs a node."""

import os
import subprocess

import pytest
from workspace import ROOT, daemon

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="Slurm runs a prolog as root, which this user is not"
)


def runs(pid):
    """Whether the process is there, and more than a zombie that init will reap."""
    try:
        with open(f"/proc/{pid}/cmdline") as line:
            return line.read() != ""
    except OSError:
        return False


@pytest.fixture
def job(tmp_path):
    """Runs a script of deploy/slurm as Slurm would; returns what it did."""

    def run(script, **more):
        env = {
            **os.environ,
            "SLURM_JOB_ID": "7",
            "SLURM_JOB_UID": "0",
            "SLURM_JOB_GID": "0",
            "HOLDFAST_RUN_DIR": str(tmp_path),
            "HOLDFAST_DAEMON": str(daemon(None)),
            **more,
        }
        return subprocess.run(
            ["sh", ROOT / "deploy/slurm" / script],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )

    yield run
    run("epilog.sh")


def test_a_job_has_its_daemon(job, tmp_path):
    assert job("prolog.sh", HOLDFAST_JOB_FLAGS="--memory_limit=1GiB").returncode == 0
    socket = tmp_path / "7/holdfastd.sock"
    assert f"export HOLDFAST_ADDRESS=unix:{socket}" in job("task_prolog.sh").stdout
    pid = (tmp_path / "7/pid").read_text().strip()
    with open(f"/proc/{pid}/cmdline") as line:
        assert "--memory_limit=1GiB" in line.read().split("\0")
    assert job("epilog.sh").returncode == 0
    assert not (tmp_path / "7").exists()
    assert not runs(pid)


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"HOLDFAST_JOB_FLAGS": "--no_such_flag"}, "there is no flag"),
        ({"HOLDFAST_DAEMON": "/nowhere/holdfastd"}, "/nowhere/holdfastd"),
        ({"SLURM_JOB_GPUS": "0,1"}, "libholdfast_cuda.so"),
    ],
)
def test_a_daemon_that_does_not_start_drains_no_node(job, variables, text):
    result = job("prolog.sh", HOLDFAST_PLUGIN_PATH="/nowhere", **variables)
    assert result.returncode == 0
    assert text in result.stderr
    told = job("task_prolog.sh").stdout
    assert told.startswith("print holdfast: no daemon for this job")
    assert text in told
    assert job("epilog.sh").returncode == 0
