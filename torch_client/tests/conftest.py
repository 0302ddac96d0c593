# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Device "holdfast" over both transports, of one daemon for the suite (`daemon`, of
the repository's conftest.py)."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

# What rounds on the way comes out differently on another processor, and declared
# failures are those of one: PyTorch and the libraries of both processes take the
# instructions that every processor of the last ten years has. Before PyTorch's import.
os.environ.update(
    ATEN_CPU_CAPABILITY="avx2",
    DNNL_MAX_CPU_ISA="AVX2",
    MKL_ENABLE_INSTRUCTIONS="AVX2",
    ONEDNN_MAX_CPU_ISA="AVX2",
    OPENBLAS_CORETYPE="Haswell",
)

import op_cases  # noqa: E402
import op_report  # noqa: E402
import pytest  # noqa: E402

FOLDER = Path(__file__).resolve().parent
PACKAGES = [FOLDER.parent, FOLDER.parents[1] / "python_client"]


@pytest.fixture(scope="module")
def device(daemon, transport):
    import holdfast_torch

    session = holdfast_torch.connect(daemon.address(transport))
    yield "holdfast"
    session.close()
    holdfast_torch.close()


class Program:
    """A process of PyTorch with the package; its output is read line by line. Without
    source `options` say what runs."""

    def __init__(self, folder, source, *arguments, options=(), env=None):
        program = list(options)
        if source is not None:
            program.append(str(folder / "program.py"))
            Path(program[-1]).write_text(textwrap.dedent(source))
        paths = [*map(str, PACKAGES), os.environ.get("PYTHONPATH", "")]
        self.process = subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                "OMP_NUM_THREADS": "1",
                **(env or {}),
            },
            cwd=folder,
        )

    def lines(self, count):
        return [self.process.stdout.readline().rstrip("\n") for _ in range(count)]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def finish(self):
        """(status, the rest of its output, its errors)"""
        out, err = self.process.communicate(timeout=240)
        return self.process.returncode, out, err


@pytest.fixture
def start(tmp_path):
    """start(source, *arguments): a Program, ended with the test."""
    programs = []

    def start(source, *arguments, **options):
        programs.append(Program(tmp_path, source, *arguments, **options))
        return programs[-1]

    yield start
    for program in programs:
        if program.process.poll() is None:
            program.kill()


@pytest.fixture
def run(start):
    """run(source, *arguments): the output of a program that ends well."""

    def run(source, *arguments, **options):
        status, out, err = start(source, *arguments, **options).finish()
        assert status == 0, err
        return out

    return run


@pytest.fixture(scope="session")
def op_runners():
    """op_cases' processes for OpInfo's samples, one for each transport."""
    runners = op_cases.Runners()
    yield runners
    runners.close()


def pytest_terminal_summary(terminalreporter):
    for line in op_report.lines(terminalreporter.stats):
        terminalreporter.write_line(line)
