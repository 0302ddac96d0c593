# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Checks this machine: what Holdfast needs, what is there, how to get the rest.

Ends with status 1 if programs here cannot run as they are set up: with no daemon
that answers and none to start, say. A machine that uses a daemon elsewhere
(HOLDFAST_ADDRESS) needs none of its own. What concerns GPUs is needed with --cuda only.
"""

import json

HELP = "check this machine"


def add_arguments(parser):
    parser.add_argument(
        "--cuda", action="store_true", help="a GPU is needed, not only welcome"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(args):
    from holdfast.commands import _machine

    findings = _machine.examine(args.cuda)
    if args.json:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.verdict:5}{finding.what}: {finding.found}")
            if finding.advice:
                print(f"     -> {finding.advice}")
    return 1 if any(finding.verdict == "FAIL" for finding in findings) else 0
