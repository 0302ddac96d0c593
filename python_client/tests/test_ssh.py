# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""connect("ssh://box"), with OpenSSH's own sshd on a port of loopback."""

import contextlib
import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from service_environment import Person, processes, wait_until

from holdfast.daemon import Daemon
from holdfast.service import hosts, ssh

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH')}:/usr/sbin")
pytestmark = pytest.mark.skipif(
    SSHD is None or not shutil.which("ssh") or os.geteuid() != 0,
    reason="needs openssh-server, and root to run it",
)
SERVER = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
"""
CLIENT = """\
Host box
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking accept-new
"""
SUM = """
import holdfast as torch
session = torch.connect({address!r}, session={name!r}, grace=600)
x = torch.kept("x") if session.attached else torch.arange(5.0)
torch.keep("x", x)
x += 1
print(session.attached, x.sum().item(), session.transport, flush=True)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def laptop():
    """A user with a laptop and a `box`, whose ssh knows the way: `address`."""
    someone, far = Person(), Person()
    port = free_port()
    for name in ("host_key", "user_key"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", someone.home / name]
        subprocess.run(key, check=True)
    for name, text in (("sshd_config", SERVER), ("ssh_config", CLIENT)):
        file = someone.home / name
        file.write_text(text.format(port=port, folder=someone.home))
    os.makedirs("/run/sshd", exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", someone.home / "sshd_config"])
    wait_until(lambda: not socket.socket().connect_ex(("127.0.0.1", port)))
    someone.env["HOLDFAST_SSH"] = f"ssh -F {someone.home / 'ssh_config'}"
    someone.far = far
    someone.address = f"ssh://box{command_of(far)}"
    yield someone
    server.terminate()
    server.wait()
    far.leave()
    someone.leave()


def command_of(far):
    """The `holdfast` of a user over there, whose shell knows nothing of this one's."""
    names = [n for n in far.env if n.startswith(("HOLDFAST_", "XDG_", "PYTHON"))]
    words = [f"{name}={shlex.quote(far.env[name])}" for name in names]
    command = far.home / "holdfast"
    command.write_text(
        f"#!/bin/sh\nexec env {' '.join(words)} {sys.executable} -m holdfast \"$@\"\n"
    )
    command.chmod(0o755)
    return command


@pytest.fixture
def box(laptop):
    yield laptop
    laptop.far.holdfast("stop", "--force")
    assert not laptop.far.daemons()


def tunnels():
    """Process ids of ssh and of what it runs over there."""
    return [
        pid
        for pid, words in processes().items()
        if words[-1] == "tunnel" or words[-1].endswith("/holdfast tunnel")
    ]


def test_a_session_over_ssh(box):
    """The daemon there is started, and stays; the tunnel ends with its program."""
    first = box.python(SUM.format(address=box.address, name="s"))
    assert first.stdout == "False 15.0 grpc\n", first.stderr
    assert f"connect('{box.address}', session='s')" in first.stderr
    wait_until(lambda: not tunnels())
    assert len(box.far.daemons()) == 1 and not box.daemons()
    assert not list((box.home / "run").glob("holdfast-ssh-*"))
    second = box.python(SUM.format(address=box.address, name="s"))
    assert second.stdout == "True 20.0 grpc\n", second.stderr
    # Over there it is the same user's session as a program's of that machine.
    local = SUM.format(address=None, name="s")
    assert box.far.python(local).stdout == "True 25.0 shm\n"
    status = box.holdfast("status", box.address)
    assert f"you are {getpass.getuser()}, admin" in status.stdout, status.stderr


def test_a_named_host_over_ssh(box):
    done = box.holdfast("login", box.address, "--name", "gpu")
    assert done.returncode == 0, done.stderr
    assert f"you are {getpass.getuser()}" in done.stdout
    assert box.holdfast("use", "gpu").returncode == 0
    done = box.python("import holdfast as t; print(t.ones(4).sum().item())")
    assert done.stdout == "4.0\n", done.stderr
    assert box.holdfast("use", "--none").returncode == 0


def test_nothing_is_left_of_a_killed_program(box):
    code = SUM.format(address=box.address, name="killed") + "input()"
    program = box.start_python(code)
    assert program.stdout.readline() == "False 15.0 grpc\n"
    assert tunnels()
    program.kill()
    program.communicate(timeout=60)
    wait_until(lambda: not tunnels())
    assert box.python(SUM.format(address=box.address, name="killed")).stdout.startswith(
        "True 20.0"
    )


def test_a_cut_costs_nothing(box):
    code = """
    import holdfast as torch
    torch.manual_seed(0)
    torch.connect({address!r}, session="cut", grace=600)
    w = torch.zeros(8, 8)
    for i in range(60):
        w += (i % 7) * torch.ones(8, 8)
        if i % 20 == 19:
            print(w.sum().item(), flush=True)
            input()
    print(w.sum().item(), torch.current_session().name)
    """
    program = box.start_python(code.format(address=box.address))
    for steps in (20, 40, 60):
        said = program.stdout.readline()
        done = 64.0 * sum(i % 7 for i in range(steps))
        assert said == f"{done}\n", said or program.stderr.read()
        for pid in tunnels():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        program.stdin.write("\n")
        program.stdin.flush()
    out, errors = program.communicate(timeout=100)
    assert out == f"{64.0 * sum(i % 7 for i in range(60))} cut\n", errors


def test_a_program_takes_its_workers_through_the_tunnel(box):
    """Processes of its own, forked and spawned, use the same one."""
    script = box.home / "program.py"
    script.write_text(
        "import sys, holdfast as torch, holdfast.multiprocessing as mp\n"
        "def work(x): print(x.sum().item() + torch.ones(1).item(), flush=True)\n"
        "if __name__ == '__main__':\n"
        "    torch.connect(sys.argv[1])\n"
        "    for how in ('fork', 'spawn'):\n"
        "        x = torch.ones(3)\n"
        "        p = mp.get_context(how).Process(target=work, args=(x,))\n"
        "        p.start(); p.join(); print(p.exitcode, flush=True)\n"
    )
    ran = box.holdfast("run", script, box.address)
    assert ran.stdout == "4.0\n0\n4.0\n0\n", ran.stderr


def test_the_machines_service_over_ssh(box):
    """The user over there is whose sshd it is: no token, no TLS."""
    with Daemon() as service:
        path = service.shm_address.removeprefix("unix:")
        far = box.far
        far.env["HOLDFAST_SERVICE_SOCKET"] = path
        command_of(far)
        done = box.python(
            f"""
            import holdfast as t
            t.connect({box.address!r}, session="at-service")
            t.keep("x", t.ones(2))
            """
        )
        assert done.returncode == 0, done.stderr
        assert "at-service" in far.holdfast("status").stdout
        assert not far.daemons()
    far.env["HOLDFAST_SERVICE_SOCKET"] = str(far.home / "no-service.sock")
    command_of(far)


@pytest.mark.parametrize(
    "address,words",
    [
        ("ssh://nowhere.invalid", "Could not resolve hostname nowhere.invalid"),
        ("ssh://box/no/such/holdfast", "Install Holdfast there, or say where"),
        ("ssh://box:1", "Connection refused"),
        ("ssh://box?x=1", "ssh://[USER@]HOST[:PORT][/PATH/OF/HOLDFAST]"),
        ("ssh://-oProxyCommand=x", "Got 'ssh://-oProxyCommand=x'"),
    ],
)
def test_sshs_words_are_told(laptop, address, words):
    done = laptop.python(f"import holdfast; holdfast.connect({address!r})")
    assert done.returncode == 1 and words in done.stderr, done.stderr
    told = laptop.holdfast("status", address)
    assert told.returncode == 1 and words in told.stderr
    assert "Traceback" not in told.stderr


def test_a_key_that_is_not_taken(laptop):
    key = ["ssh-keygen", "-q", "-N", "", "-f", laptop.home / "other_key"]
    subprocess.run(key, check=True)
    config = (laptop.home / "ssh_config").read_text().replace("user_key", "other_key")
    (laptop.home / "other_config").write_text(config)
    done = laptop.python(
        f"import holdfast; holdfast.connect({laptop.address!r})",
        HOLDFAST_SSH=f"ssh -F {laptop.home / 'other_config'}",
    )
    assert done.returncode == 1 and "Permission denied (publickey)" in done.stderr


@pytest.mark.parametrize(
    "url,meant",
    [
        ("ssh://box", ("box", [], "holdfast tunnel")),
        ("ssh://me@Box:2222/", ("me@Box", ["-p", "2222"], "holdfast tunnel")),
        ("ssh://box/opt/my env/holdfast", ("box", [], "'/opt/my env/holdfast' tunnel")),
    ],
)
def test_addresses(url, meant):
    assert ssh.parse(url) == meant


@pytest.mark.parametrize("url", ["ssh://", "ssh://a:b@box", "ssh://box:x"])
def test_addresses_that_are_none(url):
    with pytest.raises(hosts.HostsError):
        ssh.parse(url)
