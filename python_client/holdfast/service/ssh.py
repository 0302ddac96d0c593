# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""connect("ssh://user@box"): OpenSSH carries gRPC to the box's daemon.

One ssh runs `holdfast tunnel` there, which finds the daemon or starts one and says
where its gRPC listens; that port is then forwarded to a Unix socket here that its
user alone can open. It is ssh that knows users, keys and hosts, as ~/.ssh/config says.
The
command over there ends with its standard input, so that nothing is left when this
program is killed. A connection that is cut is made again, by itself.
"""

import contextlib
import json
import os
import shlex
import subprocess
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

from holdfast.service.hosts import HostsError

# ssh asks for passwords at the terminal: people take their time.
ANSWER_SECONDS = 120
FORWARD_SECONDS = 20
# A gap is noticed after 15 to 45 s; gRPC over it notices sooner.
_OPTIONS = ("-T", "-o", "ControlPersist=no", "-o", "ServerAliveInterval=15")
# Ctrl-C is the program's: ssh goes on ignoring what it finds ignored.
_WITHOUT_CTRL_C = ("/bin/sh", "-c", "trap '' INT; exec \"$@\"", "sh")
_FIRST_PAUSE, _LAST_PAUSE = 0.5, 10.0
_tunnels = {}
_lock = threading.Lock()


def tunnel(url):
    """The process's tunnel to there, which is opened first. HostsError: ssh's words."""
    with _lock:
        found = _tunnels.get((os.getpid(), url))
        if found is None:
            found = _tunnels[os.getpid(), url] = Tunnel(url)
        return found


def close_all():
    """Closes this process's tunnels, at its end, after its sessions. Idempotent."""
    for pid, url in list(_tunnels):
        opened = _tunnels.pop((pid, url))
        if pid == os.getpid():
            opened.close()


def parse(url):
    """(destination, [options], the command over there) of an address over ssh:
    ssh://[USER@]HOST[:PORT][/PATH].

    PATH is the `holdfast` over there, where a shell does not find it.
    """
    parts = urllib.parse.urlsplit(url)
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise HostsError(f"{url}: {error}") from None
    if not host or host.startswith("-") or parts.password or parts.query:
        raise HostsError(
            "an address over ssh is ssh://[USER@]HOST[:PORT][/PATH/OF/HOLDFAST]. "
            f"Got {url!r}"
        )
    # urlsplit makes small letters of the host; ~/.ssh/config may tell them apart.
    host = parts.netloc.rpartition("@")[2]
    host = host.removesuffix(f":{port}") if port else host
    destination = f"{parts.username}@{host}" if parts.username else host
    program = parts.path if parts.path not in ("", "/") else "holdfast"
    options = ["-p", str(port)] if port else []
    return destination, options, f"{shlex.quote(program)} tunnel"


class Tunnel:
    """A running ssh. `address` is for connect(); close() ends it."""

    def __init__(self, url):
        self.url = url
        self._destination, self._options, self._command = parse(url)
        self._program = shlex.split(os.environ.get("HOLDFAST_SSH") or "ssh")
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        short = runtime if 0 < len(runtime) <= 60 and os.path.isdir(runtime) else "/tmp"
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-ssh-", dir=short)
        self._path = Path(self._folder.name)
        self.address = f"grpc+unix:{self._path / 'grpc.sock'}"
        self._closing = threading.Event()
        self._process = None
        try:
            self._open()
        except BaseException:
            self._end()
            self._folder.cleanup()
            raise
        self._watch = threading.Thread(target=self._keep_open, daemon=True)
        self._watch.start()

    def connect_arguments(self, host):
        """(address, credentials) for _C.connect; the host's own token comes first."""
        token, _, _, _, plaintext = host.credentials()
        return self.address, (token or self._token(), "", "", "", plaintext)

    def _token(self):
        with contextlib.suppress(FileNotFoundError):
            return (self._path / "token").read_text()
        return ""

    def close(self):
        self._closing.set()
        self._end()
        self._watch.join(5)
        self._folder.cleanup()

    def _ssh(self, *arguments):
        control = ["-S", str(self._path / "ctl"), *self._options]
        return [*self._program, *control, *arguments]

    def _open(self, more=()):
        """Starts ssh and forwards the port that the other end names."""
        for name in ("ctl", "grpc.sock"):
            (self._path / name).unlink(missing_ok=True)
        command = self._ssh("-M", *_OPTIONS, *more, self._destination, self._command)
        with open(self._path / "errors", "wb") as errors:
            self._process = subprocess.Popen(
                [*_WITHOUT_CTRL_C, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        answer = self._read_answer()
        self._note_token(answer.get("token", ""))
        forward = f"{self._path / 'grpc.sock'}:{answer['listen']}"
        done = subprocess.run(
            self._ssh("-O", "forward", "-L", forward, self._destination),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FORWARD_SECONDS,
        )
        if done.returncode:
            raise HostsError(f"{self.url}: ssh cannot forward: {done.stderr.strip()}")

    def _read_answer(self):
        """What `holdfast tunnel` says: a line of JSON, after what a shell may print."""
        late = threading.Timer(ANSWER_SECONDS, self._process.kill)
        late.start()
        try:
            for line in self._process.stdout:
                if line.startswith(b'{"listen"'):
                    return json.loads(line)
        finally:
            late.cancel()
        self._process.wait()
        said = (self._path / "errors").read_text(errors="replace").strip()
        hint = ""
        if self._process.returncode == 127:
            hint = " Install Holdfast there, or say where: ssh://HOST/PATH/OF/HOLDFAST"
        raise HostsError(f"{self.url}: {said or 'ssh ended without a word'}.{hint}")

    def _note_token(self, token):
        """For other processes of this program: see hosts.resolve()."""
        path = self._path / "token"
        path.unlink(missing_ok=True)
        if token:
            path.touch(mode=0o600)
            path.write_text(token)

    def _keep_open(self):
        pause = _FIRST_PAUSE
        while not self._closing.is_set():
            self._process.wait()
            if self._closing.wait(pause):
                return
            try:
                self._end()
                # Nobody is asked for a password in the middle of a training.
                self._open(["-o", "BatchMode=yes"])
                pause = _FIRST_PAUSE
            except (HostsError, OSError, subprocess.SubprocessError):
                pause = min(2 * pause, _LAST_PAUSE)

    def _end(self):
        process = self._process
        if process is None:
            return
        with contextlib.suppress(OSError):
            process.stdin.close()
        deadline = time.monotonic() + 2
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if process.poll() is None:
            process.terminate()
            process.wait()
        process.stdout.close()
