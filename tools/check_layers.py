# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Finds includes that break the table of layers, and definitions outside of their
folder's namespace: `check_layers.py FILE...`.

The table is tools/layers.bzl. Bazel's visibility enforces the same one on
targets; this check also sees a header that arrives through another target.
"""

import ast
import re
import sys
from pathlib import Path

TABLE = Path(__file__).with_name("layers.bzl")
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
DECLARATION = re.compile(r"(class|struct) \w+;|//")
SOURCES = (".cc", ".h", ".cu", ".cuh", ".def", ".inc")


def read_table():
    """The dictionaries of layers.bzl, whose literals are also Python's."""
    tree = ast.parse(TABLE.read_text())
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
    }


def violations(path, table):
    """Yields (line number, included path, why not) for one file."""
    layers = table["LAYERS"]
    folder = path.split("/")[0]
    if folder not in layers:
        return
    known = set(layers) | set(table["OPEN_FOLDERS"])
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        included = match.group(1)
        target = included.split("/")[0]
        if "/" in included and target in known:
            if target != folder and target not in layers[folder]:
                allowed = ", ".join(sorted(layers[folder])) or "no other folder"
                yield number, included, f"{folder}/ may include from {allowed}"
            continue
        for prefix, folders in table["EXTERNAL"].items():
            if included.startswith(prefix) and folder not in folders:
                yield number, included, f"only {', '.join(folders)} may include it"


def misplaced(path, table):
    """Yields (line number, line) of what stands in `namespace holdfast` alone, but
    for classes that are only declared."""
    inner = table["NAMESPACES"].get(str(Path(path).parent))
    if inner is None:
        return
    outside = False
    for number, line in enumerate(Path(path).read_text().splitlines(), 1):
        if line == "namespace holdfast {":
            outside = True
        elif line in (f"namespace {inner} {{", "}  // namespace holdfast"):
            outside = False
        elif outside and line and not DECLARATION.match(line):
            yield number, line


def main(paths):
    table = read_table()
    broken = 0
    for path in paths:
        if not path.endswith(SOURCES):
            continue
        for number, included, reason in violations(path, table):
            print(f'{path}:{number}: includes "{included}": {reason}')
            broken += 1
        for number, line in misplaced(path, table):
            inner = table["NAMESPACES"][str(Path(path).parent)]
            print(f"{path}:{number}: not in namespace holdfast::{inner}: {line}")
            broken += 1
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
