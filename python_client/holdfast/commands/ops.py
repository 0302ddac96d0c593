# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Lists the ops, and the functions made of them."""

import json

HELP = "list the ops"


def add_arguments(parser):
    parser.add_argument("--json", action="store_true", help="print the whole table")


def main(args):
    from holdfast import _C, reference

    functions = reference.functions()
    if args.json:
        table = {"version": _C.__version__, "ops": _C.schema(), "functions": functions}
        print(json.dumps(table, indent=2))
        return 0
    for f in functions:
        summary = f["doc"].split("\n\n")[0].replace("\n", " ")
        print(f"{f['name']}{f['signature']}\n    {summary}")
    return 0
