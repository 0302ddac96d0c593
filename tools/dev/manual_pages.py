# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Manual pages and completion of bash for the Debian packages, made from what the
commands say of themselves."""

import gzip
import re

from workspace import VENV_PYTHON, capture, daemon, python_env

# "  --flag (default: "x")" and, indented more, what it does.
FLAG = re.compile(r'^  --(\w+) \(default: "(.*)"\)$')
CLIENT = """\
from holdfast import cli
import argparse
parser = cli.make_parser()
for action in parser._actions:
    if isinstance(action, argparse._SubParsersAction):
        helps = {a.dest: a.help for a in action._choices_actions}
        for name, sub in action.choices.items():
            flags = [f for a in sub._actions for f in a.option_strings if f[:2] == "--"
                     and a.help != argparse.SUPPRESS]
            print(name, helps.get(name, ""), " ".join(flags), sep="\\t")
"""
COMPLETION = """\
# Completion of {command} for bash.
_{command}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}}
{body}
}}
complete -o default -F _{command} {command}
"""


def daemon_flags():
    """(name, default, text) of each of holdfastd's."""
    flags = []
    for line in capture([daemon(None), "--help"]).splitlines():
        match = FLAG.match(line)
        if match:
            flags.append([*match.groups(), ""])
        elif flags and line.startswith("      "):
            flags[-1][2] = f"{flags[-1][2]} {line.strip()}".strip()
    assert len(flags) > 20, "holdfastd --help is not as it was"
    return flags


def subcommands():
    """(name, help, [flags]) of each of holdfast's."""
    text = capture([*python_command(), "-c", CLIENT])
    rows = [line.split("\t") for line in text.splitlines()]
    assert len(rows) > 8, "holdfast --help is not as it was"
    return [(name, text, flags.split()) for name, text, flags in rows]


def python_command():
    path = python_env()["PYTHONPATH"]
    return ["env", f"PYTHONPATH={path}", VENV_PYTHON]


def roff(text):
    """A line of text as it is: no command of roff's, and no dash a hyphen."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def page(name, section, version, summary, synopsis, parts):
    """A manual page; `parts`: (heading, [(term, text)])."""
    lines = [
        f'.TH {name.upper()} {section} "" "Holdfast {version}"',
        f".SH NAME\n{name} \\- {roff(summary)}",
        f".SH SYNOPSIS\n.B {name}\n{roff(synopsis)}",
    ]
    for heading, terms in parts:
        lines.append(f".SH {heading}")
        for term, text in terms:
            lines.append(f".TP\n.B {roff(term)}\n{roff(text)}")
    return "\n".join(lines) + "\n"


def daemon_page(version):
    flags = [(f"--{name}={default}", text) for name, default, text in daemon_flags()]
    files = [
        ("/etc/default/holdfastd", "flags of the service"),
        ("/etc/holdfast", "tokens and certificates"),
        ("/var/lib/holdfast", "durable names and sessions (--state_dir)"),
        ("/run/holdfast/holdfastd.sock", "where local programs find the service"),
        (
            "/usr/share/doc/holdfast-server/operating.md",
            "users, limits, alarms, what survives what",
        ),
    ]
    return page(
        "holdfastd",
        8,
        version,
        "holds tensors for programs",
        "[--FLAG=VALUE]...",
        [("OPTIONS", flags), ("FILES", files)],
    )


def client_page(version):
    commands = [
        (name, f"{text}. {' '.join(flags)}") for name, text, flags in subcommands()
    ]
    return page(
        "holdfast",
        1,
        version,
        "tensors that live in a daemon",
        "COMMAND [ARGUMENT]...",
        [("COMMANDS", commands)],
    )


def daemon_completion():
    words = " ".join(f"--{name}=" for name, _, _ in daemon_flags())
    body = f'  COMPREPLY=($(compgen -W "{words}" -- "$word"))\n  compopt -o nospace'
    return COMPLETION.format(command="holdfastd", body=body)


def client_completion():
    rows = subcommands()
    cases = "\n".join(f'    {name}) words="{" ".join(f)}" ;;' for name, _, f in rows)
    names = " ".join(name for name, _, _ in rows)
    body = f"""\
  local words=
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
  [ "$COMP_CWORD" = 1 ] && words="{names} --help --version"
  COMPREPLY=($(compgen -W "$words" -- "$word"))"""
    return COMPLETION.format(command="holdfast", body=body)


def put(tree, name, section, text, completion):
    """Into the tree of a package."""
    folder = tree / f"usr/share/man/man{section}"
    folder.mkdir(parents=True)
    # Without a time: equal trees give equal packages.
    packed = gzip.compress(text.encode(), 9, mtime=0)
    (folder / f"{name}.{section}.gz").write_bytes(packed)
    folder = tree / "usr/share/bash-completion/completions"
    folder.mkdir(parents=True)
    (folder / name).write_text(completion)
