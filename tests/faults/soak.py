# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Everything at once, for as long as you like: ./dev soak.

Programs train over both transports, some through a proxy that cuts; clients are
killed; sessions are left and attached to; limits change; the daemon is restarted, in
order and by SIGKILL. Every result must be the one of an undisturbed run, what is
durable must never go back, and in the end the daemon holds nothing that it should not.
"""

import argparse
import collections
import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import soak_crowd
from chaos import TRAIN, _kill_one, _resources
from chaos_proxy import ChaosProxy
from programs import Daemon, run_client

# Ops on tensors whose values tell how often each was applied.
CONTINUE = """
import holdfast as torch
session = torch.connect(session="soak-{name}")
if not session.attached:
    torch.keep("x", torch.zeros(1000))
x = torch.kept("x")
print(int(x[0].item()), bool((x == x[0]).all().item()), flush=True)
for _ in range({adds}):
    x.add_(1)
torch.detach()
"""
PUBLISH = """
import holdfast as torch
v = torch.full((5000,), {value}.0)
torch.publish("soak", {{"v": v, "n": {value}}}, durable=True)
"""
LOOKUP = """
import holdfast as torch
try:
    found = torch.lookup("soak")
except LookupError:
    print(0, True)
else:
    print(found["n"], bool((found["v"] == found["n"]).all().item()))
"""
STEPS = 120


class Wrong(AssertionError):
    """A tensor that is not what it must be."""


class Soak:
    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.folder = folder
        self.counts = collections.Counter()
        self.failures = []
        self.restarts = 0
        self.start_daemon()
        self.expected = run_client(TRAIN.format(steps=STEPS), self.daemon.listen)
        self.values = {name: 0 for name in "ab"}  # of the sessions that are continued
        self.published = 0

    def start_daemon(self):
        place = self.folder / f"run{self.restarts}"
        place.mkdir(mode=0o700)
        self.daemon = Daemon(
            place, f"--state_dir={self.folder}/state", "--log_level=error"
        )

    # ---- what goes on, each until `until`; a thread each

    def train(self, transport, until):
        """Weights bit-identical, whatever the others do."""
        while time.monotonic() < until:
            self.check(
                run_client(TRAIN.format(steps=STEPS), self.daemon.address(transport)),
                self.expected,
                f"training over {transport}",
            )
            self.counts[f"trained over {transport}"] += 1

    def train_cut(self, until):
        while time.monotonic() < until:
            seed = self.random.randrange(1 << 30)
            proxy = ChaosProxy(self.daemon.listen, seed=seed, every=4000)
            try:
                digest = run_client(TRAIN.format(steps=STEPS), proxy.address)
            finally:
                proxy.close()
            self.check(digest, self.expected, f"training through cuts, seed {seed}")
            self.counts["trained through cuts"] += 1
            self.counts["cuts"] += proxy.cuts

    def continue_sessions(self, until):
        """Leaves and attaches, from one transport to the other."""
        while time.monotonic() < until:
            for name in self.values:
                adds = self.random.randint(1, 50)
                transport = self.random.choice(("shm", "grpc"))
                code = CONTINUE.format(name=name, adds=adds)
                out = run_client(code, self.daemon.address(transport)).split()
                self.check(out, [str(self.values[name]), "True"], f"session {name}")
                self.values[name] += adds
                self.counts["attached"] += 1

    def publish(self, until):
        while time.monotonic() < until:
            run_client(PUBLISH.format(value=self.published + 1), self.daemon.listen)
            self.published += 1
            self.check_published()
            self.counts["published"] += 1

    def kill_clients(self, until):
        while time.monotonic() < until:
            transport = self.random.choice(("shm", "grpc"))
            _kill_one(self.daemon.address(transport), self.random.randrange(1 << 30))
            self.counts["killed"] += 1
            time.sleep(0.1)

    def change_limits(self, until):
        from holdfast.commands._daemon import ask_admin

        while time.monotonic() < until:
            # Never below what the programs need: theirs is not to fail.
            limits = {
                "weight": self.random.uniform(0.1, 10),
                "memory_bytes": self.random.randint(1 << 30, 1 << 33),
            }
            ask_admin(
                "unix:" + self.daemon.socket, "set_limits", user="", limits=limits
            )
            self.counts["limits changed"] += 1
            time.sleep(0.3)

    # ----

    def check(self, got, expected, what):
        if got != expected:
            raise Wrong(f"{what}: {got!r} instead of {expected!r}")

    def check_published(self):
        out = run_client(LOOKUP, self.daemon.address("shm")).split()
        self.check(out, [str(self.published), "True"], "the durable name")

    def guard(self, work, *args):
        try:
            work(*args)
        except BaseException as error:
            self.failures.append(f"{work.__name__}: {type(error).__name__}: {error}")

    def round(self, seconds):
        """All of it at once, then a restart."""
        until = time.monotonic() + seconds
        jobs = [
            (self.train, "shm", until),
            (self.train, "grpc", until),
            (self.train_cut, until),
            (self.continue_sessions, until),
            (self.publish, until),
            (self.kill_clients, until),
            (self.change_limits, until),
        ]
        threads = [threading.Thread(target=self.guard, args=job) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.settle()
        self.restart(kill=self.restarts % 3 == 2)

    def settle(self):
        """Only what is left on purpose is left."""
        deadline = time.monotonic() + 75  # longer than any grace period here
        names = {f"soak-{name}" for name in self.values}
        while True:
            left = self.daemon.stats()["sessions"]
            strangers = [s for s in left if s["name"] not in names]
            if not strangers:
                return
            if time.monotonic() > deadline:
                self.failures.append(f"sessions that nobody left: {strangers}")
                return
            time.sleep(0.5)

    def restart(self, kill):
        if kill:
            self.daemon.process.kill()
            self.daemon.process.wait(60)
            # Sessions are as the last SIGTERM saved them.
            self.values = dict(self.saved)
        else:
            self.daemon.stop()
            self.saved = dict(self.values)
        self.counts["killed daemons" if kill else "ended daemons"] += 1
        self.restarts += 1
        self.start_daemon()
        self.guard(self.check_published)


def run(folder, seconds, seed, round_seconds=60):
    """Returns figures; "failures" must be empty."""
    import holdfast  # noqa: F401 - killed clients are forks of this process

    soak = Soak(Path(folder), seed)
    first = None
    begin = time.monotonic()
    while not soak.failures and (
        time.monotonic() - begin < seconds or soak.restarts < 2
    ):
        soak.round(round_seconds)
        # A daemon that has just started and loaded the same state.
        resources = _resources(soak.daemon)
        first = first or resources
    soak.daemon.stop()
    return {
        "seed": seed,
        "seconds": round(time.monotonic() - begin, 1),
        **soak.counts,
        "descriptors": [first["descriptors"], resources["descriptors"]],
        "failures": soak.failures,
    }


def main():
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument(
        "--sessions",
        type=int,
        metavar="N",
        help="instead: so many sessions of six kinds at once on one daemon, trainers, "
        "notebooks, readers, leavers, laptops that sleep and attackers; how long each "
        "honest one waits, and what the daemon holds (50 are meant)",
    )
    args = parser.parse_args()
    if args.sessions:
        return soak_crowd.main(args)
    with tempfile.TemporaryDirectory(prefix="holdfast-soak-") as folder:
        figures = run(folder, args.minutes * 60, args.seed)
    print(json.dumps(figures, indent=2))
    print("FAILED" if figures["failures"] else "all is well")
    return 1 if figures["failures"] else 0


if __name__ == "__main__":
    threading.stack_size(256 << 10)
    os.umask(0o077)
    sys.exit(main())
