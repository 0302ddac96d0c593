# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The `holdfast` command: serve, run, status, ops."""

import argparse
import json
import os
import sys

from holdfast import run


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="holdfast", description="Tensors that outlive your program."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser(
        "serve",
        help="run the daemon",
        description="Runs holdfastd; arguments go to it (see holdfastd --help).",
        add_help=False,
    )
    serve.add_argument("arguments", nargs=argparse.REMAINDER)
    serve.set_defaults(main=_serve)

    program = commands.add_parser(
        "run",
        help="run a PyTorch program on the daemon",
        description="Runs a program written for PyTorch, unchanged: in its process "
        "`import torch` means holdfast.",
    )
    run.add_arguments(program)
    program.set_defaults(main=run.run)

    status = commands.add_parser("status", help="show a running daemon's sessions")
    status.add_argument(
        "address",
        nargs="?",
        help="host:port or unix:PATH (default: HOLDFAST_ADDRESS, else this machine's "
        "daemon)",
    )
    status.add_argument("--address", dest="named_address", help=argparse.SUPPRESS)
    status.add_argument("--ops", action="store_true", help="show op counts too")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(main=_status)

    ops = commands.add_parser("ops", help="list the ops")
    ops.add_argument("--json", action="store_true", help="print the whole table")
    ops.set_defaults(main=_ops)

    # The daemon's own --help and flags pass through untouched.
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["serve"]:
        return _serve(argparse.Namespace(arguments=arguments[1:]))
    args = parser.parse_args(arguments)
    try:
        return args.main(args)
    except BrokenPipeError:
        # The reader (`| head`) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _serve(args):
    from holdfast.daemon import find_daemon

    try:
        daemon = find_daemon()
    except FileNotFoundError as error:
        return _fail(str(error))
    os.execv(daemon, [daemon, *args.arguments])


def default_address():
    """Where a daemon that nobody named would be, without starting one."""
    if os.environ.get("HOLDFAST_ADDRESS"):
        return os.environ["HOLDFAST_ADDRESS"]
    path = os.environ.get("HOLDFAST_SOCKET")
    if not path:
        folder = os.environ.get("XDG_RUNTIME_DIR")
        folder = f"{folder}/holdfast" if folder else f"/tmp/holdfast-{os.getuid()}"
        path = f"{folder}/holdfastd.sock"
    return f"unix:{path}"


def _status(args):
    import holdfast
    from holdfast import _stats
    from holdfast.errors import HoldfastError

    address = args.address or args.named_address or default_address()
    try:
        with holdfast.connect(address, grace=0, default=False) as session:
            reply = _stats.parse(session._stats())
    except HoldfastError as error:
        return _fail(str(error))
    if args.json:
        print(json.dumps(reply, indent=2))
        return 0
    print(
        f"{reply['server']} on {reply['device']} at {address}, "
        f"up {_duration(reply['uptime_seconds'])}"
    )
    rows = [("ID", "NAME", "CLIENT", "VIA", "TENSORS", "IN USE", "OPS", "DEVICE TIME")]
    for s in reply["sessions"]:
        via = s["transport"] if s["connected"] else "(away)"
        rows.append(
            (
                str(s["id"]),
                s["name"] or "-",
                s["client"],
                via,
                str(s["tensors"]),
                _bytes(s["bytes_in_use"]),
                str(s["ops"]),
                f"{s['device_seconds']:.3f} s",
            )
        )
    _table(rows)
    if args.ops:
        print()
        rows = [("OP", "CALLS", "FAILED", "SECONDS")]
        for op in sorted(reply["ops"], key=lambda op: -op["seconds"]):
            rows.append(
                (
                    op["name"],
                    str(op["calls"]),
                    str(op["failures"]),
                    f"{op['seconds']:.3f}",
                )
            )
        _table(rows)
    return 0


def _ops(args):
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


def _table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(w) for text, w in zip(row, widths)).rstrip())


def _bytes(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024


def _duration(seconds):
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _fail(message):
    print(f"holdfast: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
