# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""One daemon, many clients: shares of the device, latency beside busy and hostile
neighbours, very many sessions, a start with much state.

Clients are processes that use the Python client over shared memory. The parts:
fairness, interactive, hostile, crowd, restart (--only one of them).
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(FOLDER))

import crowd  # noqa: E402
import daemon  # noqa: E402
import fairness  # noqa: E402
import hostile  # noqa: E402
import peer  # noqa: E402
import report  # noqa: E402
import restart  # noqa: E402

PARTS = ("fairness", "interactive", "hostile", "crowd", "restart")


def main():
    p = report.parser(__doc__)
    p.add_argument("--only", choices=PARTS, help="one part")
    p.add_argument("--seconds", type=float, help="of each measurement (default 30)")
    p.add_argument("--gigabytes", type=float, help="of state (default 1)")
    args = p.parse_args()
    seconds = args.seconds or (3 if args.quick else 30)
    parts = [args.only] if args.only else PARTS
    crowd.allow_descriptors(65536)
    r = report.Report(f"service: {peer.threads()} threads")
    with daemon.running("--max_sessions=20000") as d:
        local = "unix:" + d["socket"]
        if "fairness" in parts:
            fairness.equal_clients(r, local, seconds)
            fairness.weighted_clients(r, seconds)
        if "interactive" in parts:
            fairness.interactive_client(r, local, seconds)
        if "hostile" in parts:
            hostile.latency_beside_them(r, d, seconds / 3)
        if "crowd" in parts:
            shrink = 10 if args.quick else 1
            crowd.many_at_once(r, local, d["pid"], 1000 // shrink, 200 // shrink)
            crowd.opened_and_closed(r, local, d["pid"], 10000 // shrink)
    if "restart" in parts:
        restart.restart(r, args.gigabytes or (0.1 if args.quick else 1))
    return r.finish(args)


if __name__ == "__main__":
    sys.exit(main())
