# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The two wheels, installed with pip into environments of their own."""

import email
import os
import re
import subprocess
import zipfile

import pytest
import wheel_file
from workspace import ROOT, SYSTEM_PYTHON

PROGRAM = """
import holdfast as torch
layer = torch.nn.Linear(3, 1)
layer(torch.ones(2, 3)).sum().backward()
print(layer.weight.grad.tolist(), torch.current_session().transport)
"""


@pytest.fixture(scope="module")
def wheels():
    return wheel_file.make_wheel(), wheel_file.make_server_wheel()


@pytest.fixture
def install(tmp_path):
    """Makes an environment with these wheels; returns run(arguments)."""

    def make(*wheels):
        # Debian's numpy is seen; nothing is fetched.
        venv = tmp_path / "venv"
        subprocess.run(
            [SYSTEM_PYTHON, "-m", "venv", "--system-site-packages", venv], check=True
        )
        folder = wheels[0].parent
        names = [wheel.name.partition("-")[0] for wheel in wheels]
        subprocess.run(
            [venv / "bin/pip", "install", "-q", "--no-index", "--no-cache-dir"]
            + ["--find-links", folder, *names],
            check=True,
        )
        env = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST")}
        env.pop("PYTHONPATH", None)
        env["HOLDFAST_SOCKET"] = str(tmp_path / "nobody.sock")

        def run(program, *arguments):
            return subprocess.run(
                [venv / "bin" / program, *arguments],
                capture_output=True,
                text=True,
                env=env,
                cwd=tmp_path,
            )

        return run

    return make


def test_both_wheels_are_all_a_program_needs(wheels, install):
    run = install(*wheels)
    done = run("python", "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[2.0, 2.0, 2.0]] shm\n"
    where = run("python", "-c", "import holdfast; print(holdfast.__file__)")
    assert "site-packages/holdfast" in where.stdout
    for command in (("holdfastd", "--help"), ("holdfast", "serve", "--help")):
        done = run(*command)
        assert done.returncode == 0 and "--socket" in done.stdout + done.stderr
    assert run("holdfast", "ops").returncode == 0


def test_the_client_alone_says_what_is_missing(wheels, install):
    run = install(wheels[0])
    done = run("python", "-c", PROGRAM)
    assert done.returncode == 1
    message = done.stderr.strip().splitlines()[-1]
    assert "no daemon runs on this machine" in message
    assert "pip install holdfast_server-*.whl" in message
    assert "connect(" in message and "HOLDFAST_ADDRESS" in message
    done = run("holdfast", "serve")
    assert done.returncode == 1 and "pip install holdfast_server-" in done.stderr


def test_wheels_say_what_they_are(wheels, install):
    shown = install(*wheels)("pip", "show", "--verbose", "holdfast").stdout
    assert "Author: The Holdfast Authors" in shown and "Typing :: Typed" in shown
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = [n for n in archive.namelist() if n.endswith("/METADATA")]
            fields = email.message_from_bytes(archive.read(name))
        assert fields["Name"] in ("holdfast", "holdfast-server") and fields["Summary"]
        assert (
            fields["Description-Content-Type"] and "holdfastd" in fields.get_payload()
        )


def test_nobody_is_sent_to_another_project_on_pypi():
    """There the name `holdfast` is somebody else's."""
    listing = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True)
    for name in listing.splitlines():
        if name.endswith((".py", ".md", ".cc", ".h", ".sh", ".service", ".ipynb")):
            text = " ".join((ROOT / name).read_text().replace('"', "").split())
            found = re.search(r"pip install hold[f]ast([-_]server)?(?![-\w*])", text)
            assert found is None, f"{name}: {found.group()}"


def test_the_client_is_small(wheels):
    client, server = wheels
    assert client.stat().st_size < 25 << 20
    assert client.name.endswith("-cp311-abi3-manylinux_2_36_x86_64.whl")
    assert server.name.endswith("-py3-none-manylinux_2_36_x86_64.whl")
