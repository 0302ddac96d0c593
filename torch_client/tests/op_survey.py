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


def summary(found):
    """ "n of m ops"; an op without a sample that can be compared is none of them."""
    idle = [k for k, r in found.items() if not r["error"] and not r["samples"]]
    ran = len(found) - len(idle)
    good = ran - sum(bool(r["error"]) for r in found.values())
    samples = sum(r["samples"] for r in found.values())
    share = good / max(ran, 1)
    line = f"{good} of {ran} ops ({share:.1%}), {samples} samples"
    return line + (f"; not compared: {' '.join(idle)}" if idle else "")


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
        lines.append(f"{kind}: {summary(found)}")
        errors = [r["error"] for r in found.values() if r["error"]]
        missing.update(filter(None, map(missing_in, errors)))
    runner.close()
    for name, count in missing.most_common():
        print(f"missing {count:3} {name}")
    print("\n".join(lines))
    if options.json:
        with open(options.json, "w") as out:
            json.dump(reports, out, indent=1)


if __name__ == "__main__":
    sys.exit(main())
