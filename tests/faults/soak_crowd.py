# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""./dev soak --sessions N: N sessions of six kinds on one daemon, as colleagues and
attackers would use it. No honest user may wait for others, nothing may be lost, and
the daemon's memory and descriptors must stay what they are.

The users have tokens and limits as an admin would set them (CONFIG). Local attackers
are another account of this machine, where this program may choose one.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import soak_figures
from programs import Daemon
from soak_log import Log, Reader, waiting

FOLDER = Path(__file__).resolve().parent
HOSTILE = FOLDER.parents[1] / "benchmarks/accounts/hostile.py"
NOBODY = 65534

# Strangers have what keeps them from being in the way: an op holds the others up for
# as long as it runs. op_seconds is looked at five times a second.
CONFIG = """
default_limits {
  memory: "128MiB"
  max_sessions: 8
  max_handles: 20000
  max_graph_nodes: 100000
  max_names: 50
  max_connections: 50
  op_seconds: 0.05
}
"""
COLLEAGUE = """
user {{
  name: "{name}"
  limits {{
    memory: "{memory}"
    max_sessions: 64
    max_handles: 200000
    op_seconds: 10
  }}
}}
"""
# Of fifty; fewer in proportion, one at least.
KINDS = {
    "trainer": 10,
    "notebook": 10,
    "reader": 8,
    "publisher": 2,
    "leaver": 6,
    "laptop": 4,
    "attacker": 10,
}
# Over gRPC, with a token; and on the daemon's socket.
REMOTE_ATTACKS = (
    *("long-ops", "handles", "flood", "graph", "memory", "names", "strangers"),
)
LOCAL_ATTACKS = ("channel", "results", "hang-ups", "commands", "sockets")
OWN = ("channel", "long-ops", "flood", "memory")  # of soak_attackers.py


def shares(sessions):
    """How many there are of each kind."""
    found = {kind: max(1, sessions * n // 50) for kind, n in KINDS.items()}
    found["notebook"] += max(0, sessions - sum(found.values()))
    return found


class Crowd:
    def __init__(self, folder, sessions, seed):
        self.folder, self.seed = folder, seed
        self.random = random.Random(seed)
        self.kinds = shares(sessions)
        self.root = os.geteuid() == 0
        self.logs = folder / "logs"
        self.logs.mkdir()
        self.own = Log(self.logs / "soak.log")
        self.honest, self.attackers = {}, {}
        self.samples = []
        self.over = threading.Event()
        self.start_daemon()
        self.reader = Reader(self.logs)

    # ---- the daemon and its users

    def names(self):
        return [
            f"{kind}{n}" for kind, count in self.kinds.items() for n in range(count)
        ]

    def start_daemon(self):
        place = self.folder / "daemon"
        place.mkdir()
        tokens, config = self.folder / "tokens", self.folder / "config"
        tokens.touch(mode=0o600)
        honest = [n for n in self.names() if not n.startswith("attacker")]
        self.tokens = {name: new_token(tokens, name) for name in self.names()}
        here = subprocess.run(["id", "-un"], capture_output=True, text=True).stdout
        colleagues = [COLLEAGUE.format(name=n, memory="512MiB") for n in honest]
        colleagues.append(COLLEAGUE.format(name=here.strip(), memory="8GiB"))
        config.write_text(CONFIG + "".join(colleagues))
        if self.root:
            # Attackers have another account, and a folder for what they generate.
            os.chmod(self.folder, 0o711)
            place.chmod(0o711)
            (self.folder / "theirs").mkdir()
            os.chown(self.folder / "theirs", NOBODY, NOBODY)
        self.daemon = Daemon(
            place,
            f"--config={config}",
            f"--token_file={tokens}",
            "--log_level=error",
            *(["--socket_mode=0666"] if self.root else []),
        )

    def start(self, kind, name, address, *options):
        return start_process(
            FOLDER / "soak_programs.py",
            kind,
            name,
            address,
            self.logs / f"{name}.log",
            self.seed,
            *options,
            HOLDFAST_TOKEN=self.tokens[name],
        )

    # ---- who is there

    def start_honest(self):
        reference = self.start("reference", "trainer0", self.daemon.address("shm"))
        digest = reference.communicate(timeout=120)[0].strip()
        publishers = [n for n in self.names() if n.startswith("publisher")]
        # They come a few at a time, as people do.
        ordered = sorted(self.names(), key=lambda n: not n.startswith("publisher"))
        for number, name in enumerate(ordered):
            kind = name.rstrip("0123456789")
            address = self.daemon.address("shm" if number % 2 else "grpc")
            options = []
            if kind == "attacker":
                continue
            if kind in ("trainer", "laptop"):
                # One of them never rests.
                options = [digest, 0 if name == "trainer1" else 0.05]
            if kind == "laptop":
                options.append(self.logs)
            if kind in ("laptop", "publisher"):
                address = self.daemon.listen
            if kind == "reader":
                options = publishers
            self.honest[name] = self.start(kind, name, address, *options)
            if kind == "publisher" or number % 4 == 0:
                self.honest[name].stdout.readline()

    def start_attacker(self, number):
        local = number % 2 and self.root
        kinds = LOCAL_ATTACKS if local else REMOTE_ATTACKS
        kind = self.random.choice(kinds)
        script = FOLDER / "soak_attackers.py" if kind in OWN else HOSTILE
        name = f"attacker{number}"
        environment = {"HOLDFAST_TOKEN": self.tokens[name]}
        if local:
            environment["TMPDIR"] = str(self.folder / "theirs")
        seed = [self.random.randrange(1 << 30)] if kind in OWN else []
        process = start_process(
            script,
            kind,
            self.daemon.socket,
            self.daemon.listen,
            *seed,
            user=NOBODY if local else None,
            stderr=open(self.folder / "attackers.txt", "ab"),
            **environment,
        )
        self.attackers[name] = process
        self.own.count(f"attacks: {kind}")

    def replace_attackers(self):
        """Each for a while; then it is killed, and another one comes."""
        for name in list(self.attackers):
            if self.random.random() < 0.3 or self.attackers[name].poll() is not None:
                self.kill(self.attackers.pop(name))
                self.start_attacker(int(name[len("attacker") :]))

    def kill(self, process):
        process.kill()
        process.wait(60)
        process.stdout.close()
        process.stdin.close()

    # ---- what is measured

    def watch(self):
        """Which of the daemon's threads had to wait for a processor, and when."""
        before = waiting(self.daemon.process.pid)
        self.starved = []  # (from, until, {thread: seconds})
        begin = time.monotonic()
        while not self.over.wait(0.05):
            after, end = waiting(self.daemon.process.pid), time.monotonic()
            grown = {t: s - before.get(t, 0) for t, s in after.items()}
            grown = {t: s for t, s in grown.items() if s > 0.001}
            if grown:
                self.starved.append((begin, end, grown))
            before, begin = after, end

    def sample(self):
        from holdfast.commands._daemon import ask_admin

        pid = self.daemon.process.pid
        with self.own.timed("status"):
            users = ask_admin("unix:" + self.daemon.socket, "list_users")
        self.samples.append(
            {
                "at": time.monotonic(),
                "ledger": int(users["device_bytes_reserved"]),
                "resident": soak_figures.resident(pid),
                "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
            }
        )

    def healthy(self):
        """What an honest user's program ends with is in its log."""
        for name, process in self.honest.items():
            if process.poll() is not None and process not in self.ended:
                self.ended.append(process)
                self.own.fail(f"{name} ended with {process.returncode}")
        if self.daemon.process.poll() is not None:
            self.own.fail(f"the daemon ended: {self.daemon.process.returncode}")
        return self.daemon.process.poll() is None

    def run(self, seconds, every=60):
        self.ended = []
        self.idle = soak_figures.resident(self.daemon.process.pid)
        self.sample()
        watcher = threading.Thread(target=self.watch)
        watcher.start()
        echo = start_process(FOLDER / "soak_control.py", self.logs / "control.log")
        try:
            self.start_honest()
            for number in range(self.kinds["attacker"]):
                self.start_attacker(number)
            self.began = begin = time.monotonic()
            told, replaced = begin, begin
            while self.healthy() and (now := time.monotonic()) - begin < seconds:
                self.sample()
                if now - replaced > 15:
                    self.replace_attackers()
                    replaced = now
                if now - told > every:
                    told = now
                    self.reader.read()
                    print(soak_figures.progress(self, now - begin), flush=True)
                time.sleep(min(2, seconds / 10))
            self.end()
        finally:
            self.over.set()
            watcher.join()
            for process in (*self.attackers.values(), *self.honest.values(), echo):
                self.kill(process)
        self.reader.read()
        self.daemon.stop()
        return soak_figures.figures(self)

    def end(self):
        """Attackers die, the others end: nothing of any of them may be left."""
        for process in self.attackers.values():
            process.kill()
        for process in self.honest.values():
            process.stdin.close()
        for name, process in self.honest.items():
            try:
                status = process.wait(300)
            except subprocess.TimeoutExpired:
                status = "no end in five minutes"
            if status != 0 and process not in self.ended:
                self.own.fail(f"{name} ended with {status}")
        for name in self.attackers:
            address = self.daemon.listen
            self.start("unpublish", name, address).communicate(timeout=120)
        deadline = time.monotonic() + 120  # longer than the grace of attackers
        while left := self.daemon.stats()["sessions"]:
            if time.monotonic() > deadline:
                names = [s["name"] or s["user"] for s in left]
                self.own.fail(f"sessions that nobody left: {names}")
                break
            time.sleep(0.5)
        time.sleep(1)
        self.sample()


def start_process(script, *arguments, user=None, stderr=None, **environment):
    return subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        user=user,
        group=user,
        extra_groups=[] if user else None,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
    )


def new_token(file, user):
    command = [sys.executable, "-m", "holdfast", "token", "create", user]
    out = subprocess.run([*command, "--file", file], stdout=subprocess.PIPE, check=True)
    return out.stdout.decode().strip()


def run(seconds, sessions, seed, every=60):
    """Returns figures; "failures" must be empty."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with tempfile.TemporaryDirectory(prefix="holdfast-crowd-") as folder:
        return Crowd(Path(folder), sessions, seed).run(seconds, every)


def main(args):
    print(f"seed {args.seed}, {args.sessions} sessions", flush=True)
    figures = run(args.minutes * 60, args.sessions, args.seed)
    print(json.dumps(figures, indent=2))
    wrong = figures["failures"] + soak_figures.judge(figures)
    for text in wrong:
        print("WRONG:", text)
    print("FAILED" if wrong else "all is well")
    return 1 if wrong else 0
