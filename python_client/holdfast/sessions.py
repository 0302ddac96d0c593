# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Connections to a daemon: connect, leave, keep tensors for a later program."""

import atexit
import os

from holdfast import _C
from holdfast._registry import function
from holdfast._structure import put_together, take_apart


@function
def connect(
    address=None,
    *,
    session=None,
    attach=None,
    grace=60.0,
    timeout=10.0,
    default=True,
    token=None,
    ca=None,
    certificate=None,
    key=None,
    allow_plaintext_token=False,
):
    """Opens a session on a daemon and makes it the default one.

    Tensors of a former default session stay where they are; that session ends
    with the last of them, or with its close().

    address   "host:port" (gRPC) or "unix:/path" (shared memory). None: what
              HOLDFAST_ADDRESS names, else a daemon that runs on this machine,
              else a private one that ends with this program.
    session   a name for the session. If a program left a session of that name
              (detach(), or a lost connection), this one goes on with it: its
              `attached` is True, and kept() returns what is kept there. Else it
              is new.
    attach    True: the session must be there, and is taken over from a program
              that still uses it. False: it must be new.
    grace     seconds that the session outlives a lost connection; negative:
              until somebody attaches to it or ends it.
    timeout   seconds to connect, and to reconnect after a cut.
    default   whether new tensors are made in this session.

    Over gRPC a daemon may ask who you are, and you may ask it:

    token     what `holdfast token create` printed. None: HOLDFAST_TOKEN, else
              the text of the file HOLDFAST_TOKEN_FILE.
    ca        use TLS; the file (PEM) of who signed the daemon's certificate, or
              "system" for this machine's authorities. None: HOLDFAST_CA.
    certificate, key
              files (PEM) of your own certificate and its key, for daemons that
              ask for one. None: HOLDFAST_CERTIFICATE, HOLDFAST_KEY.
    allow_plaintext_token
              show the token to another machine without TLS.
    """
    if isinstance(attach, str):
        session, attach = attach, True
    if attach and not session:
        raise ValueError("connect(attach=True) needs the session's name")
    return _C.connect(
        address or "",
        session or "",
        bool(attach),
        attach is None and bool(session),
        float(grace),
        float(timeout),
        default,
        _credentials(token, ca, certificate, key, allow_plaintext_token),
    )


def _credentials(token, ca, certificate, key, allow_plaintext_token):
    paths = (os.fspath(path or "") for path in (ca, certificate, key))
    return (token or "", *paths, bool(allow_plaintext_token))


@function
def disconnect(keep=False):
    """Leaves the default session; with keep it stays on the daemon."""
    session = _C.current_session()
    if session is not None:
        session.close(keep=keep)


@function
def detach():
    """Leaves the default session on the daemon, under its name, with what it keeps.

    Everything submitted is done first. connect(session=name) goes on with it: from
    this program or another one, on this machine or another. Tensors that are to be
    there then must have been kept with keep(). RuntimeError: the session has no
    name; it stays as it is.
    """
    session = _C.current_session()
    if session is None:
        raise RuntimeError("detach() needs a session: connect(session=name) first")
    session.close(keep=True)


@function
def current_session():
    """The default session, which is opened if need be."""
    return _C.default_session()


function(_C.set_default_session, names=("set_default_session",))


@function
def synchronize():
    """Waits until every op submitted so far is done."""
    session = _C.current_session()
    if session is not None:
        session.synchronize()


# Behind the name under which something was kept that is more than tensors.
_STRUCTURE = ":structure"


@function
def keep(name, value):
    """Keeps tensors on the daemon after this program ends.

    value is a tensor, a (nested) dict of tensors such as a module's state_dict, or
    what has a state_dict: a module, an optimizer, a scheduler. Dicts, lists and tuples
    may have numbers, strings, booleans and None beside the tensors, which are kept as
    they are now; tensors are what later ops make of them. None drops what the name
    holds. A later program gets it with connect(session=...) and kept(). Like any op
    this does not wait: a program that may be killed calls synchronize() after it.

    TypeError: something else is in it. ValueError: the name ends in ":structure".
    """
    session = _C.default_session()
    if name.endswith(_STRUCTURE):
        raise ValueError(
            f"keep(): names that end in {_STRUCTURE!r} are taken: {name!r}"
        )
    if hasattr(value, "state_dict"):
        value = value.state_dict()
    if value is None:
        for known in session.kept():
            if known in (name, name + _STRUCTURE) or known.startswith(name + "."):
                session.keep(known, None)
        return
    if isinstance(value, _C.Tensor):
        session.keep(name, value)
        return
    tensors, structure = take_apart(value, "keep")
    for key, tensor in tensors.items():
        session.keep(f"{name}.{key}", tensor)
    if _is_flat(value):
        structure = None
    else:
        import holdfast

        data = holdfast.frombuffer(bytearray(structure), dtype=holdfast.uint8)
        structure = data.clone()
    if structure is not None or name + _STRUCTURE in session.kept():
        session.keep(name + _STRUCTURE, structure)


def _is_flat(value):
    """A dict of tensors and such dicts: their names say all."""
    return isinstance(value, dict) and all(
        isinstance(item, _C.Tensor) or _is_flat(item) for item in value.values()
    )


@function
def kept(name=None):
    """What the session keeps: {name: tensor}, or what was kept as `name`.

    A dict of nothing but tensors comes back as a flat dict, its keys joined by dots.
    """
    tensors = _C.default_session().kept()
    if name is None:
        return {k: v for k, v in tensors.items() if not k.endswith(_STRUCTURE)}
    if name in tensors:
        return tensors[name]
    prefix = name + "."
    found = {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}
    structure = tensors.get(name + _STRUCTURE)
    if structure is not None:
        return put_together(structure.numpy().tobytes(), found)
    if not found:
        from holdfast.errors import NotFoundError

        raise NotFoundError(f"nothing is kept under the name {name!r}")
    return found


atexit.register(_C.close_all)
