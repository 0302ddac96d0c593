# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of one benchmark: a table for people, JSON for programs."""

import argparse
import json
import math
import sys


def parser(description):
    """An argument parser with what every benchmark takes."""
    p = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--json", metavar="FILE", help="also write the results here")
    p.add_argument(
        "--quick", action="store_true", help="fewer repetitions: a smoke test"
    )
    return p


class Report:
    """Collects results; `ratio` is ours divided by the peer's.

    `target` bounds the value, or with `target_ratio` the ratio; `higher` says
    that more is better.
    """

    def __init__(self, title):
        self.title = title
        self.results = []

    def add(
        self, name, value, unit, peer=None, target=None, target_ratio=None, higher=False
    ):
        ratio = value / peer if peer else None
        measured, bound = (
            (ratio, target_ratio) if target_ratio is not None else (value, target)
        )
        met = None
        if bound is not None and measured is not None:
            met = measured >= bound if higher else measured <= bound
        sign = "≥" if higher else "≤"
        text = None
        if target_ratio is not None:
            text = f"{sign} {target_ratio:g}× peer"
        elif target is not None:
            text = f"{sign} {target:g} {unit}"
        self.results.append(
            {
                "name": name,
                "value": value,
                "unit": unit,
                "peer": peer,
                "ratio": ratio,
                "target": text,
                "met": met,
            }
        )
        print(f"  {name}: {_number(value)} {unit}", file=sys.stderr, flush=True)

    def add_geometric_mean(self, target):
        """The geometric mean of the ratios so far, which should be <= `target`."""
        ratios = [r["ratio"] for r in self.results if r["ratio"] is not None]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            self.add("geometric mean of the ratios", mean, "x", target=target)

    def finish(self, args):
        """Prints the table, writes JSON, returns the exit status."""
        rows = [("what", "value", "peer", "ratio", "target", "met")]
        for r in self.results:
            peer = "-" if r["peer"] is None else f"{_number(r['peer'])} {r['unit']}"
            ratio = "-" if r["ratio"] is None else f"{r['ratio']:.2f}"
            met = {True: "yes", False: "NO", None: "-"}[r["met"]]
            rows.append(
                (
                    r["name"],
                    f"{_number(r['value'])} {r['unit']}",
                    peer,
                    ratio,
                    r["target"] or "-",
                    met,
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(6)]
        print(f"\n{self.title}")
        for i, row in enumerate(rows):
            print("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip())
            if i == 0:
                print("  ".join("-" * w for w in widths))
        if args.json:
            with open(args.json, "w") as f:
                json.dump({"results": self.results}, f, indent=1)
        return 0


def _number(x):
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"
