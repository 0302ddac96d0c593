# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs whose control flow decides: small ops and scalar reads, against PyTorch.

The same file, ordinary PyTorch code, runs whole under PyTorch and under `holdfast
run`, in turns. Work is fixed by counts (steps of an environment, lines, words), so
that both sides do the same. Imports are not timed: ours are ten times shorter.
"""

import os
import subprocess
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))

import daemon  # noqa: E402
import peer  # noqa: E402
import report  # noqa: E402

# The argument of each program: some seconds under PyTorch, and a smoke test.
PROGRAMS = {
    "actor_critic": (12000, 300),
    "policy_gradient": (24000, 2000),
    "char_rnn": (1500, 100),
    "bigram_counter": (20000, 200),
    "lbfgs_fit": (2, 1),
    "rnn_loop": (150, 5),
    "beam_search": (60, 2),
    "maml": (150, 5),
    "gradient_penalty": (200, 5),
    "ppo": (4096, 512),
}


def seconds(address, name, amount):
    """What the program took: under PyTorch if `address` is None. None if it failed,
    with its error shown."""
    env = dict(os.environ, OMP_NUM_THREADS=str(peer.threads()))
    command = [peer.python() if address is None else sys.executable]
    if address is not None:
        command += ["-m", "holdfast.run", "--address", address]
    command += [os.path.join(FOLDER, "timed.py"), name, str(amount)]
    out = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
    if out.returncode:
        where = "PyTorch" if address is None else "Holdfast"
        print(f"{name} failed under {where} (see above)", file=sys.stderr)
        return None
    return float(out.stdout.splitlines()[-1])


def main():
    p = report.parser(__doc__)
    p.add_argument("--only", choices=PROGRAMS, help="one program")
    p.add_argument("--turns", type=int, default=2, help="of each side")
    args = p.parse_args()
    r = report.Report(f"programs: {peer.threads()} threads, PyTorch {peer.version()}")
    failed = False
    with daemon.running() as d:
        local = "unix:" + d["socket"]
        for name in [args.only] if args.only else PROGRAMS:
            amount = PROGRAMS[name][args.quick]
            turns = range(1 if args.quick else args.turns)
            times = [[seconds(a, name, amount) for a in (local, None)] for _ in turns]
            ours, theirs = zip(*times)
            if None in ours:
                failed = True
                continue
            other = None if None in theirs else min(theirs)
            r.add(name, min(ours), "s", other, target_ratio=1.2)
    r.add_geometric_mean(1.0)
    return r.finish(args) or failed


if __name__ == "__main__":
    sys.exit(main())
