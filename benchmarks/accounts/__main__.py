# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What the process holds is what the ledger counts: fifty sessions of six kinds, the
daemon's resident memory against the sum of its users' accounts, once a second; then
hostile programs, one for each way to take memory, beside a client that works. Its
peer is the same client beside a program that never asks the daemon, and takes as much
of the processors as the hostile one and the daemon's work for that: what is left is
the daemon's doing.

Resident is RssAnon and RssShmem of /proc/PID/status, less what the
daemon has for itself: what it held before the first session, and CONSTANT for scratch
memory that it keeps for the next kernel, for idle sessions and for gaps of its heap.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(FOLDER), os.path.dirname(FOLDER) + "/service"]

import daemon  # noqa: E402
import fairness  # noqa: E402
import report  # noqa: E402

from holdfast.commands._daemon import ask_admin  # noqa: E402

MIB = 1 << 20
CONSTANT = 192 * MIB
LIMIT = 256  # MiB of a hostile user
HOSTILE = (
    "handles",
    "graph",
    "results",
    "commands",
    "strangers",
    "names",
    "hang-ups",
    "sockets",
)


def resident(pid):
    status = open(f"/proc/{pid}/status").read()
    return sum(
        int(re.search(rf"{key}:\s+(\d+) kB", status)[1]) << 10
        for key in ("RssAnon", "RssShmem")
    )


def counted(running):
    address = "unix:" + running["socket"]
    return int(ask_admin(address, "list_users")["device_bytes_reserved"])


def start(script, *args, **env):
    process = subprocess.Popen(
        [sys.executable, f"{FOLDER}/{script}", *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
    )
    return process


def wait_until_ready(process):
    if process.stdout.readline() != "ready\n":
        raise RuntimeError("a client of the benchmark failed; see above")
    return process


def stop(process):
    process.stdin.close()
    process.wait(120)


def mixed(r, sessions, seconds):
    with daemon.running() as running:
        own = resident(running["pid"])
        per = 10
        clients = [
            start("clients.py", running["socket"], running["listen"], first, per)
            for first in range(0, sessions, per)
        ]
        for client in clients:
            wait_until_ready(client)
        over, under, ratios, most = [], [], [], 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # The ledger before and after: the sessions go on meanwhile.
            before = counted(running)
            held = resident(running["pid"]) - own
            ledger = max(before, counted(running))
            over.append(held - 1.05 * ledger)
            under.append(0.95 * min(before, ledger) - held)
            ratios.append(held / max(ledger, 1))
            most = max(most, held)
            time.sleep(min(1, seconds / 10))
        for client in clients:
            stop(client)
        r.add(f"{sessions} sessions: most resident", most / MIB, "MiB")
        r.add("resident, of the ledger, median", statistics.median(ratios), "x")
        r.add(
            "resident above 1.05 x ledger, most",
            max(over) / MIB,
            "MiB",
            target=CONSTANT / MIB,
        )
        r.add(
            "resident below 0.95 x ledger, most",
            max(under) / MIB,
            "MiB",
            target=CONSTANT / MIB,
        )
        time.sleep(2)
        left = resident(running["pid"]) - own
        r.add("left when all are gone", left / MIB, "MiB", target=CONSTANT / MIB)
        r.add("on the ledger then", counted(running) / MIB, "MiB", target=0)


def processor_seconds(*pids):
    """That these processes have used, with all their threads."""
    total = 0
    for pid in pids:
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def beside(address, script, *args, pid, seconds, **env):
    """The client's latencies beside that program, and the processors' part that the
    program and the daemon used."""
    process = wait_until_ready(start(script, *args, **env))
    try:
        used, begin = processor_seconds(pid, process.pid), time.monotonic()
        found = fairness.latencies(address, 0, seconds)
        used = processor_seconds(pid, process.pid) - used
        return found, used / (time.monotonic() - begin)
    finally:
        process.kill()
        process.wait()


def hostile(r, seconds):
    with tempfile.TemporaryDirectory() as folder:
        tokens, config = f"{folder}/tokens", f"{folder}/config"
        os.close(os.open(tokens, os.O_CREAT | os.O_WRONLY, 0o600))
        mallory, alice = (fairness.new_token(user, tokens) for user in ("m", "a"))
        with open(config, "w") as file:
            file.write(
                f'default_limits {{ memory: "{LIMIT}MiB" max_connections: 200 '
                "max_names: 100 }\n"
                'user { name: "a" limits { memory: "1GiB" max_connections: 0 } }\n'
            )
        flags = f"--config={config}", f"--token_file={tokens}"
        with daemon.running(*flags) as running:
            own = resident(running["pid"])
            os.environ["HOLDFAST_TOKEN"] = alice
            address = running["listen"]
            here = {"pid": running["pid"], "seconds": seconds}
            # What the daemon uses for the client.
            _, own_part = beside(address, "neighbour.py", 0.001, **here)
            for kind in HOSTILE:
                places = running["socket"], address
                found, part = beside(
                    address, "hostile.py", kind, *places, HOLDFAST_TOKEN=mallory, **here
                )
                held = resident(running["pid"]) - own
                part = max(part - own_part, 0.001)
                peer, _ = beside(address, "neighbour.py", part, **here)
                r.add(
                    f"{kind}: resident",
                    held / MIB,
                    "MiB",
                    target=LIMIT + CONSTANT / MIB,
                )
                r.add(
                    f"{kind}: p99 of another user's op and read",
                    fairness.quantile(found, 0.99) * 1e3,
                    "ms",
                    fairness.quantile(peer, 0.99) * 1e3,
                    target_ratio=1.1,
                )


def main():
    p = report.parser(__doc__)
    p.add_argument("--seconds", type=float, default=600, help="of the mixed sessions")
    p.add_argument("--sessions", type=int, default=50)
    p.add_argument("--only", choices=("mixed", "hostile"))
    args = p.parse_args()
    if args.quick:
        args.sessions, args.seconds = min(args.sessions, 10), min(args.seconds, 5)
    r = report.Report("What the process holds against what the ledger counts")
    if args.only != "hostile":
        mixed(r, args.sessions, args.seconds)
    if args.only != "mixed":
        hostile(r, 2 if args.quick else 10)
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
