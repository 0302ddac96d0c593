# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Hosts with names: holdfast login, use, hosts, the machine's file, their order."""

import pytest
from service_environment import Person

from holdfast.commands import token
from holdfast.daemon import Daemon
from holdfast.service import hosts

WHERE = """
import holdfast as torch
print(torch.ones(3).sum().item(), torch.current_session().address)
"""


@pytest.fixture
def person():
    someone = Person()
    yield someone
    someone.leave()


@pytest.fixture(scope="module")
def box(tmp_path_factory):
    """(a daemon that asks for a token, the token)."""
    file = str(tmp_path_factory.mktemp("box") / "tokens")
    secret = token.make(file, "alice")
    with Daemon(f"--token_file={file}") as daemon:
        yield daemon.grpc_address, secret


def test_login_and_use(person, box):
    address, secret = box
    done = person.holdfast("login", address, "--name", "box", input=secret + "\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"you are alice, user, at {address}\n")
    assert person.config.stat().st_mode & 0o777 == 0o600
    assert person.config.parent.stat().st_mode & 0o777 == 0o700
    named = WHERE.replace("print", 'torch.connect("box"); print', 1)
    assert person.python(named).stdout == f"3.0 {address}\n"
    # The address alone gets the token, too; and nothing uses the host yet.
    by_address = WHERE.replace("print", f"torch.connect({address!r}); print", 1)
    assert person.python(by_address).stdout == f"3.0 {address}\n"
    assert "/holdfast-private-" in person.python(WHERE).stdout
    assert person.holdfast("use", "box").returncode == 0
    assert person.python(WHERE).stdout == f"3.0 {address}\n"
    assert "you are alice, user" in person.holdfast("status").stdout
    listed = person.holdfast("hosts").stdout
    assert "*" in listed and "a token" in listed and secret not in listed
    assert person.holdfast("use", "--none").returncode == 0
    assert "/holdfast-private-" in person.python(WHERE).stdout
    assert person.holdfast("hosts", "--remove", "box").returncode == 0
    assert "no host has a name yet" in person.holdfast("hosts").stdout
    assert secret not in person.config.read_text()


def test_what_does_not_let_in_is_not_written(person, box):
    address, _ = box
    done = person.holdfast("login", address, "--name", "box", input="hf_wrong\n")
    assert done.returncode == 1 and "token" in done.stderr
    assert not person.config.exists()
    done = person.holdfast("login", address, "--name", "a b", input="\n")
    assert done.returncode == 1 and "'a b'" in done.stderr
    done = person.holdfast("login", "unix:/x", input="\n")
    assert done.returncode == 1 and "HOST:PORT" in done.stderr
    unchecked = ("login", "gpu.example.org", "--unchecked", "--token", "hf_x")
    assert person.holdfast(*unchecked).returncode == 0
    known = hosts.read(person.config)["hosts"]
    assert known == {"gpu": hosts.Host("gpu.example.org:50151", "hf_x")}
    assert "no host 'gup'" in person.holdfast("use", "gup").stderr


def test_a_program_works_with_the_hosts_token_in_its_workers(person, box):
    """A process that multiprocessing spawns shows the token, too."""
    address, secret = box
    done = person.holdfast("login", address, "--name", "box", input=secret + "\n")
    assert done.returncode == 0, done.stderr
    assert person.holdfast("use", "box").returncode == 0
    script = person.home / "program.py"
    script.write_text(
        "import holdfast as torch, holdfast.multiprocessing as mp\n"
        "def work(x): print(x.sum().item() + torch.ones(1).item(), flush=True)\n"
        "if __name__ == '__main__':\n"
        "    x = torch.ones(3).share_memory_()\n"
        "    p = mp.get_context('spawn').Process(target=work, args=(x,))\n"
        "    p.start(); p.join(); print(p.exitcode)\n"
    )
    ran = person.holdfast("run", script)
    assert ran.stdout == "4.0\n0\n", ran.stderr


def test_the_order(person, box):
    """Argument, HOLDFAST_ADDRESS, use, the machine's file, this machine."""
    address, secret = box
    (person.home / "client.conf").write_text(
        f'use = "lab"\n[hosts.lab]\naddress = "{address}"\n'
        f'token_file = "{person.home}/lab.token"\n'
    )
    (person.home / "lab.token").write_text(secret)
    assert person.python(WHERE).stdout == f"3.0 {address}\n"
    with Daemon() as second, Daemon() as third, Daemon() as fourth:
        add = ("login", second.grpc_address, "--name", "own")
        assert person.holdfast(*add, input="\n").returncode == 0
        assert person.holdfast("use", "own").returncode == 0
        assert person.python(WHERE).stdout == f"3.0 {second.grpc_address}\n"
        variable = {"HOLDFAST_ADDRESS": third.shm_address}
        assert person.python(WHERE, **variable).stdout == f"3.0 {third.shm_address}\n"
        said = person.holdfast("use", "own", **variable).stdout
        assert "HOLDFAST_ADDRESS says" in said
        argued = f"torch.connect({fourth.shm_address!r}); print"
        done = person.python(WHERE.replace("print", argued, 1), **variable)
        assert done.stdout == f"3.0 {fourth.shm_address}\n"
        # The variable may hold a name.
        named = {"HOLDFAST_ADDRESS": "lab"}
        assert person.python(WHERE, **named).stdout == f"3.0 {address}\n"
    # --none leaves the machine's default.
    assert person.holdfast("use", "--none").returncode == 0
    assert person.python(WHERE).stdout == f"3.0 {address}\n"


@pytest.mark.parametrize(
    "given,meant",
    [
        ("box", "box:50151"),
        ("a.b-c.org", "a.b-c.org:50151"),
        ("[::1]", "[::1]:50151"),
        ("grpc://box", "box:50151"),
        ("box:1", "box:1"),
        ("[::1]:1", "[::1]:1"),
    ],
)
def test_the_default_port(given, meant):
    assert hosts.with_port(given) == meant


def test_the_default_port_is_tried(person):
    done = person.python("import holdfast; holdfast.connect('no-such-host', timeout=2)")
    assert done.returncode == 1 and "no-such-host:50151" in done.stderr


SECRET = "hf_secret_text"


@pytest.mark.parametrize(
    "text,mode,words",
    [
        ("use = box\n", 0o600, "config.toml: Invalid value"),
        ("uses = 'x'\n", 0o600, "Got `uses`"),
        ("[hosts.b]\ntoken = 'hf_secret_text'\n", 0o600, "[hosts.b] needs an address"),
        (
            "[hosts.b]\naddress = 'b'\ntokn = 'hf_secret_text'\n",
            0o600,
            "Got address, tokn",
        ),
        ("[hosts.b]\naddress = 1\n", 0o600, "may have the texts"),
        (
            "[hosts.b]\naddress = 'b'\ntoken = 'hf_secret_text'\n",
            0o640,
            "others may read it: chmod 600",
        ),
    ],
)
def test_mistakes_in_the_file(person, text, mode, words):
    person.config.parent.mkdir(parents=True)
    person.config.write_text(text)
    person.config.chmod(mode)
    for done in (person.holdfast("hosts"), person.python(WHERE)):
        assert done.returncode == 1 and words in done.stderr, done.stderr
        assert str(person.config) in done.stderr and SECRET not in done.stderr


def test_what_is_written_is_read_again(person, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(person.home / "config"))
    odd = hosts.Host('a"b\\c\u007f\U0001f600:1', "t\tn", ca="/ä/ca.crt")
    hosts.write("x.y-z", {"x.y-z": odd, "b": hosts.Host("b:1")})
    known = hosts.read(person.config)
    assert known == {"use": "x.y-z", "hosts": {"x.y-z": odd, "b": hosts.Host("b:1")}}


def test_a_user_without_a_home(person):
    """As of a service: nothing can be read there, and nothing is missed."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        del person.env[name]
    done = person.python(WHERE, HOME="/dev/null")
    assert done.returncode == 0 and "/holdfast-private-" in done.stdout, done.stderr
    named = WHERE.replace("print", 'torch.connect(session="s"); print', 1)
    done = person.python(named, HOME="/dev/null")
    assert done.returncode == 0 and "/holdfast-private-" in done.stdout, done.stderr
    assert "a private daemon is used: " in done.stderr
