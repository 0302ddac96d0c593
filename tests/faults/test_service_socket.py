# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A program that names no daemon finds the one that its machine runs for everybody."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import pytest

PROGRAM = """
import holdfast as torch
print(torch.ones(3).sum().item(), torch.current_session().address)
"""


@pytest.fixture
def machine(tmp_path):
    """Environment of a program on a machine where nobody's own daemon runs."""
    (tmp_path / "run").mkdir(mode=0o700)
    unset = ("HOLDFAST_ADDRESS", "HOLDFAST_SOCKET")
    env = {k: v for k, v in os.environ.items() if k not in unset}
    env["XDG_RUNTIME_DIR"] = str(tmp_path / "run")
    return env


def run(env, *arguments, service):
    return subprocess.run(
        [sys.executable, *arguments],
        env={**env, "HOLDFAST_SERVICE_SOCKET": service},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_program_is_sent_to_the_service(machine, daemon):
    out = run(machine, "-c", PROGRAM, service=daemon.socket)
    assert (out.stdout, out.stderr) == (f"3.0 unix:{daemon.socket}\n", "")
    status = run(machine, "-m", "holdfast", "status", service=daemon.socket)
    assert daemon.socket in status.stdout, status.stderr
    doctor = run(machine, "-m", "holdfast", "doctor", service=daemon.socket)
    assert f"on cpu at unix:{daemon.socket}" in doctor.stdout
    # Sessions of a name are found again without an address.
    named = """
import holdfast as torch
a = torch.ones(2)
print(torch.connect(session="s", grace=60).attached, a.sum().item())
torch.keep("a", a)
"""
    first, second = (run(machine, "-c", named, service=daemon.socket) for _ in "ab")
    assert (first.stdout, second.stdout) == ("False 2.0\n", "True 2.0\n")
    assert "connect(session='s')" in first.stderr


def test_the_service_comes_before_ones_own_daemon(machine, daemon, start_daemon):
    """Its limits and shares hold for everybody."""
    own = start_daemon()
    os.mkdir(machine["XDG_RUNTIME_DIR"] + "/holdfast")
    os.symlink(own.socket, machine["XDG_RUNTIME_DIR"] + "/holdfast/holdfastd.sock")
    out = run(machine, "-c", PROGRAM, service=daemon.socket)
    assert out.stdout == f"3.0 unix:{daemon.socket}\n"
    out = run(machine, "-c", PROGRAM, service="/nowhere/d.sock")
    assert out.stdout.endswith("/run/holdfast/holdfastd.sock\n")
    # Who names a socket gets that one or a private daemon.
    named = {**machine, "HOLDFAST_SOCKET": "/nowhere/d.sock"}
    out = run(named, "-c", PROGRAM, service=daemon.socket)
    assert "/holdfast-private-" in out.stdout and out.stderr == ""


def test_no_private_daemon_without_a_word(machine, tmp_path):
    gone = tmp_path / "gone.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(gone))
    listener.close()  # the file stays
    out = run(machine, "-c", PROGRAM, service=str(gone))
    assert "/holdfast-private-" in out.stdout
    assert out.stderr.count("\n") == 1
    assert out.stderr.startswith(
        "holdfast: a private daemon is started, since the service of this machine "
        f"cannot be used: [connect] no daemon answers at unix:{gone}"
    )
    out = run(machine, "-c", PROGRAM, service=str(tmp_path / "none.sock"))
    assert "/holdfast-private-" in out.stdout and out.stderr == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_folder_of_anybody_is_no_service(machine, daemon):
    """A daemon of another user is believed where that user alone can put a socket."""
    as_nobody = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
print("ready", flush=True); sys.stdin.read()
"""
    folder = tempfile.mkdtemp(dir="/tmp")  # which all may enter
    os.chmod(folder, 0o777)
    path = folder + "/d.sock"
    with subprocess.Popen(
        [sys.executable, "-c", as_nobody, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as stranger:
        assert stranger.stdout.readline() == "ready\n"
        out = run(machine, "-c", PROGRAM, service=path)
        stranger.stdin.close()
    shutil.rmtree(folder)
    assert "/holdfast-private-" in out.stdout
    assert "is not the service's own" in out.stderr


def forward(listener, target):
    """What `ssh -L` does: bytes, and no descriptors."""

    def pump(source, sink):
        while data := source.recv(65536):
            sink.sendall(data)

    def serve():
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(target)
        for pair in ((client, server), (server, client)):
            threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


def test_a_forwarded_socket_says_to_use_grpc(daemon, tmp_path):
    import holdfast

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "x.sock"))
    listener.listen()
    forward(listener, daemon.socket)
    with pytest.raises(RuntimeError) as caught:
        holdfast.connect(f"unix:{tmp_path}/x.sock", default=False)
    listener.close()
    assert "ssh -L 50151:localhost:50151 HOST" in str(caught.value)
    assert 'connect("localhost:50151")' in str(caught.value)
    daemon.check_alive()
