# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""In notebooks: `%load_ext holdfast`, then `%holdfast` shows where the tensors live.

`%holdfast ADDRESS` connects to a daemon there, `%holdfast` alone shows the session:
address, device, memory and what waits to be executed. `%holdfast stop` calls back
what waits (see holdfast.cancel()). From then on tensors and
sessions show more than their text.

`%holdfast session NAME` keeps the notebook's tensors, modules, optimizers and
schedulers in a session of that name (default: the notebook's own) as they are made;
after a crash or a Restart the same line and `%holdfast restore` bring their names back.
Classes that the notebook defines must be defined again first.
"""

import html
import os
import sys

from holdfast import _C, _stats, sessions
from holdfast.errors import HoldfastError

_LINE = (
    "{server} at {address} · session {session} · {device} · {memory} in {tensors} "
    "tensors (peak {peak}) · {queue}"
)


def size_text(count):
    """A number of bytes for people."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"


class Status:
    """What %holdfast shows: a line of text, or a table in a notebook."""

    def __init__(self, session):
        submitted = session._op_sequence
        reply = _stats.parse(session._stats())
        mine = next(s for s in reply["sessions"] if s["id"] == session.id)
        waiting = max(0, submitted - mine["op_sequence"])
        limit = reply["memory_limit_bytes"]
        self.facts = {
            "server": session.server,
            "address": f"{session.address} ({session.transport})",
            "session": f"{mine['name'] or 'unnamed'} (number {mine['id']})",
            "device": session.device,
            "memory": size_text(mine["bytes_in_use"])
            + (f" of {size_text(limit)}" if limit else ""),
            "tensors": str(mine["tensors"]),
            "peak": size_text(mine["peak_bytes_in_use"]),
            "queue": f"{waiting} ops wait" if waiting else "nothing waits",
        }

    def __repr__(self):
        return _LINE.format(**self.facts)

    def _repr_html_(self):
        return table(self.facts)


def table(facts):
    """HTML of a dict of texts."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in facts.items()
    )
    return f"<table>{rows}</table>"


def holdfast(line):
    """%holdfast: shows the session. %holdfast ADDRESS: connects to a daemon.
    %holdfast stop: cancels what was submitted and is not done.
    %holdfast session NAME: keeps the notebook's tensors, modules and optimizers.
    %holdfast restore: brings back those of the kernel before this one."""
    command, _, rest = line.strip().partition(" ")
    try:
        if command == "session":
            return _keep_names(rest.strip())
        if command == "restore":
            return _restore()
        if command == "stop":
            session = _C.current_session()
            count = 0 if session is None else session.cancel("%holdfast stop")
            print(f"holdfast: {count} ops are cancelled")
            return None
        if command:
            sessions.connect(line.strip())
        return Status(_C.default_session())
    except (HoldfastError, ValueError) as error:
        print(f"holdfast: {error}")


# ---- %holdfast session, restore


class _Kept:
    """The shell, the Namespace that is kept, if any, and what IPython is to call."""

    shell = names = None

    @classmethod
    def begin(cls, names):
        cls.end()
        cls.names = names
        cls.shell.events.register("pre_run_cell", cls.before_cell)
        cls.shell.events.register("post_run_cell", cls.after_cell)

    @classmethod
    def end(cls):
        if cls.names is not None:
            cls.shell.events.unregister("pre_run_cell", cls.before_cell)
            cls.shell.events.unregister("post_run_cell", cls.after_cell)
        cls.names = None

    @staticmethod
    def before_cell(*_):
        _Kept.names.cell_begins()

    @staticmethod
    def after_cell(*_):
        try:
            refused = _Kept.names.cell_ends()
        except (HoldfastError, RuntimeError) as error:
            print(f"holdfast: nothing is kept: {error}", file=sys.stderr)
            return
        for name, why in refused.items():
            print(f"holdfast: {name} is not kept: {why}", file=sys.stderr)


def _keep_names(name):
    from holdfast.service.namespace import Namespace

    name = name or _notebook_name(_Kept.shell.user_ns)
    session = sessions.connect(session=name, grace=-1)
    names = Namespace(session, _Kept.shell.user_ns)
    _Kept.begin(names)
    before = names.names_before()
    if before:
        print(
            f"holdfast: session {name!r} has {', '.join(before)} of an earlier kernel: "
            "%holdfast restore"
        )
    else:
        print(f"holdfast: session {name!r} keeps what this notebook makes")


def _notebook_name(user_ns):
    """As Jupyter or VS Code tells. ValueError: neither does."""
    path = os.environ.get("JPY_SESSION_NAME") or user_ns.get("__vsc_ipynb_file__")
    if not path:
        raise ValueError(
            "this notebook's name is not known here: %holdfast session NAME"
        )
    home = os.path.expanduser("~") + "/"
    return str(path).removeprefix(home)


def _restore():
    if _Kept.names is None:
        raise ValueError("%holdfast session NAME comes first, with the same name")
    back, absent = _Kept.names.restore()
    print(f"holdfast: back are {', '.join(back) or 'no names'}")
    for name, classes in absent.items():
        print(
            f"holdfast: {name} waits for the class {', '.join(classes)}: run the cell "
            "that defines it, then %holdfast restore"
        )


def load_ipython_extension(ipython):
    """For %load_ext holdfast."""
    _Kept.shell = ipython
    ipython.register_magic_function(holdfast, "line", "holdfast")
    _C.Session._repr_html_ = _session_html
    _C.Tensor._repr_html_ = _tensor_html


def unload_ipython_extension(ipython):
    """For %unload_ext holdfast."""
    _Kept.end()
    if ipython.magics_manager.magics["line"].pop("holdfast", None) is not None:
        del _C.Session._repr_html_, _C.Tensor._repr_html_


# ---- rich representations


def _session_html(self):
    if self.closed:
        return f"<code>{html.escape(repr(self))}</code>"
    return Status(self)._repr_html_()


def _tensor_html(self):
    """The text, and beneath it what the text leaves out."""
    layout = f"{tuple(self.shape)} · {self.dtype} · {self.device}"
    return (
        f"<pre style='margin:0'>{html.escape(repr(self))}</pre>"
        f"<small>{html.escape(layout)} · {size_text(self.nbytes)}</small>"
    )
