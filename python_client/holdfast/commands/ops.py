# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Lists the ops, and the functions made of them.

With --json the ops have their parameters taken apart, as clients in other languages
need them (docs/clients.md)."""

import json

HELP = "list the ops"


def add_arguments(parser):
    parser.add_argument("--json", action="store_true", help="print the whole table")


def main(args):
    from holdfast import _C, op_signatures, reference

    functions = reference.functions()
    if args.json:
        ops = [row | op_signatures.parse(row["signature"]) for row in _C.schema()]
        table = {"version": _C.__version__, "ops": ops, "functions": functions}
        print(json.dumps(table, indent=2))
        return 0
    for f in functions:
        summary = f["doc"].split("\n\n")[0].replace("\n", " ")
        print(f"{f['name']}{f['signature']}\n    {summary}")
    return 0
