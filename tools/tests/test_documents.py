# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What documents list is all that there is."""

import re
import subprocess

from workspace import ROOT

READ = re.compile(r'(?:getenv|Environment|environ(?:\.get)?)[([]"(HOLDFAST_[A-Z_]+)"')


def test_every_variable_of_a_program_is_in_the_table():
    listing = subprocess.check_output(
        ["git", "ls-files", "client", "proto", "python_client/src"]
        + ["python_client/holdfast", "server/exec"],
        cwd=ROOT,
        text=True,
    )
    read = set()
    for name in listing.splitlines():
        if name.endswith((".cc", ".h", ".py")) and "_test." not in name:
            read |= set(READ.findall((ROOT / name).read_text()))
    read = {name for name in read if not name.startswith("HOLDFAST_TEST_")}
    assert len(read) > 8
    text = (ROOT / "docs/operating.md").read_text()
    table = text.partition("What a program takes from its environment:")[2]
    rows = [
        row for row in table.partition("## Trust")[0].splitlines() if row[:1] == "|"
    ]
    listed = set(re.findall(r"`(HOLDFAST_[A-Z_]+)`", "\n".join(rows)))
    assert read - listed == set()


FOLDERS = ["server", "kernels", "tests"]
INCLUDE = re.compile(r'^#include "(server/\w+)/', re.MULTILINE)


def sources(*folders):
    listing = subprocess.check_output(
        ["git", "ls-files", *folders], cwd=ROOT, text=True
    )
    return [ROOT / name for name in listing.splitlines()]


def test_every_folder_says_what_lives_there():
    inner = {
        path.parent
        for path in sources(*FOLDERS)
        if path.suffix in (".cc", ".py", ".js") and path.parent.name != "tests"
    }
    inner = {f for f in inner if f.parent.name in FOLDERS or f.name == "kernels"}
    assert len(inner) > 15
    for folder in sorted(inner):
        name = str(folder.relative_to(ROOT))
        readme = folder / "README.md"
        assert readme.exists(), f"{name} has no README.md"
        assert readme.read_text().startswith(f"# {name}: "), name


def test_who_includes_a_folder_of_the_server():
    includers = {}
    for path in sources("server"):
        if path.suffix not in (".cc", ".h") or "test" in path.name:
            continue
        for folder in INCLUDE.findall(path.read_text()):
            of = "main.cc" if path.parent.name == "server" else path.parent.name + "/"
            if folder != str(path.parent.relative_to(ROOT)):
                includers.setdefault(folder, set()).add(of)
    assert len(includers) > 10
    for folder, found in includers.items():
        text = (ROOT / folder / "README.md").read_text()
        who = text.partition("**Who includes it.**")[2].partition("**Tests.**")[0]
        if "Every folder" in who:
            continue
        told = {of for of in found if f"`{of}`" in who}
        assert found == told, f"{folder}/README.md leaves out {sorted(found - told)}"
