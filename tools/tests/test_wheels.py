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

NAMES = ("holdfast-tensors", "holdfast-tensors-server")
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
    assert "pip install holdfast_tensors_server-*.whl" in message
    assert "connect(" in message and "HOLDFAST_ADDRESS" in message
    done = run("holdfast", "serve")
    assert (
        done.returncode == 1 and "pip install holdfast_tensors_server-" in done.stderr
    )


def test_wheels_say_what_they_are(wheels, install):
    shown = install(*wheels)("pip", "show", "--verbose", NAMES[0]).stdout
    assert "Author: The Holdfast Authors" in shown and "Typing :: Typed" in shown
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = [n for n in archive.namelist() if n.endswith("/METADATA")]
            fields = email.message_from_bytes(archive.read(name))
        assert fields["Name"] in NAMES and fields["Summary"]
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
            found = found or re.search(r"hold[f]ast_server-\*", text)
            assert found is None, f"{name}: {found.group()}"


STRANGER = """\
Metadata-Version: 2.1
Name: holdfast
Version: 0.5.1
"""


@pytest.fixture
def stranger(tmp_path):
    """A wheel named as PyPI's project, with files that our package has, too."""
    wheel = tmp_path / "holdfast-0.5.1-py3-none-any.whl"
    info = "holdfast-0.5.1.dist-info"
    files = {
        "holdfast/__init__.py": "Contract = None\n",
        "holdfast/version.py": "def rollback(): pass\n",
        f"{info}/METADATA": STRANGER,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(name, text)
    return wheel


def test_another_projects_package_is_noticed(wheels, stranger, install, tmp_path):
    run = install(wheels[0])
    environment = tmp_path / "venv/lib/python3.11/site-packages"
    quiet = run("python", "-W", "error", "-c", "import holdfast")
    assert (quiet.returncode, quiet.stderr) == (0, "")
    pip = ("pip", "install", "-q", "--no-index", "--no-deps", "--force-reinstall")
    # Over ours: the package is theirs, and our command says so.
    assert run(*pip, stranger).returncode == 0
    said = run("holdfast", "doctor")
    assert said.returncode == 1 and "`holdfast` 0.5.1" in said.stderr
    assert "pip uninstall holdfast" in said.stderr
    # Ours over theirs works, and doctor knows.
    assert run(*pip, wheels[0]).returncode == 0
    assert run("python", "-c", "import holdfast; holdfast.Tensor").returncode == 0
    assert "FAIL package" in run("holdfast", "doctor").stdout
    # Without our metadata the import itself says so.
    (info,) = environment.glob("holdfast_tensors-*.dist-info")
    info.rename(tmp_path / "info")
    assert "is another project" in run("python", "-c", "import holdfast").stderr
    (tmp_path / "info").rename(info)
    # Theirs removed takes our __init__.py along.
    assert run("pip", "uninstall", "-q", "-y", "holdfast").returncode == 0
    said = run("holdfast", "doctor")
    assert said.returncode == 1 and "lost its __init__.py" in said.stderr
    assert "--force-reinstall holdfast_tensors-*.whl" in said.stderr


def test_the_client_is_small(wheels):
    client, server = wheels
    assert client.stat().st_size < 25 << 20
    assert client.name.endswith("-cp311-abi3-manylinux_2_36_x86_64.whl")
    assert server.name.endswith("-py3-none-manylinux_2_36_x86_64.whl")
