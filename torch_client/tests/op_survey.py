# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""How many of PyTorch's OpInfos the device passes, and which operators are missing:

python tests/op_survey.py [--samples N] [--ops NAME,...] [KIND ...]

N: samples of an op, 0 for all. Prints each failure, the operators that were missing by
how many OpInfos each stopped, and for each kind "n of m ops"."""

import argparse
import collections
import json
import re
import sys

import op_runner
import op_worker


def missing_in(error):
    """The operator that a failure names as having no kernel, or None."""
    found = re.search(r"Could not run 'aten::([\w.]+)'", error) or re.search(
        r"holdfast: ([\w.]+) with these arguments", error
    )
    return found and found[1]


def survey(kind, keys, samples, runner):
    """{op: report}, each failure printed as it comes."""
    found = {}
    for key in keys:
        found[key] = report = runner(kind, key, samples)
        if report["error"]:
            text = " ".join(report["error"].split())[:200]
            print(f"{kind} {key}: {text}", flush=True)
    return found


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("kinds", nargs="*", default=list(op_worker.KINDS))
    parse.add_argument("--samples", type=int, default=0)
    parse.add_argument("--timeout", type=float, default=60)
    parse.add_argument("--ops", help="separated by commas")
    parse.add_argument("--json", help="a file for all reports")
    options = parse.parse_args()
    runner = op_runner.Runner(timeout=options.timeout)
    missing, reports, lines = collections.Counter(), {}, []
    for kind in options.kinds:
        keys = op_worker.keys_of(kind)
        if options.ops:
            keys = [k for k in keys if k in options.ops.split(",")]
        reports[kind] = found = survey(kind, keys, options.samples, runner)
        errors = [r["error"] for r in found.values() if r["error"]]
        missing.update(filter(None, map(missing_in, errors)))
        good = len(found) - len(errors)
        lines.append(f"{kind}: {good} of {len(found)} ops ({good / len(found):.1%})")
    runner.close()
    for name, count in missing.most_common():
        print(f"missing {count:3} {name}")
    print("\n".join(lines))
    if options.json:
        with open(options.json, "w") as out:
            json.dump(reports, out, indent=1)


if __name__ == "__main__":
    sys.exit(main())
