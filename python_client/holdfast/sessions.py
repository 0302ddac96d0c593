# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Connections to a daemon: connect, leave, keep tensors for a later program."""

import atexit
import math
import os
import sys

from holdfast import _C
from holdfast._registry import function
from holdfast._structure import put_together, take_apart, tensor_keys


@function
def connect(
    address=None,
    *,
    session=None,
    attach=None,
    grace=None,
    timeout=10.0,
    reconnect_timeout=None,
    run_ahead=None,
    default=True,
    token=None,
    ca=None,
    certificate=None,
    key=None,
    allow_plaintext_token=False,
):
    """Opens a session on a daemon and makes it the default one.

    Tensors of a former default session stay where they are; that session ends
    with the last of them, or with its close(). But where a program makes tensors
    first and then asks for a session with a name on the same daemon, what it made is
    in it: the session that its first op opened gets the name.

    A session that has a name and keeps something (keep()) outlives the program,
    however that ends, for its grace period; close() and `holdfast end` end it.

    address   "host:port" (gRPC; "host": port 50151), "unix:/path" (shared memory),
              "ssh://user@host" (gRPC through ssh, which needs neither token nor
              TLS), or the name of a host (`holdfast login`). None: what
              HOLDFAST_ADDRESS names, else what `holdfast use` chose, else what the
              machine's /etc/holdfast/client.conf says, else the machine's service or
              a daemon of yours that runs here. Else, with session=, your own is
              started, which stays (`holdfast start`); without, a private one, which
              ends with this program.
    session   a name for the session. If a program left a session of that name
              (detach(), or a lost connection), this one goes on with it: its
              `attached` is True, and kept() returns what is kept there. Else it
              is new.
    attach    True: the session must be there, and is taken over from a program
              that still uses it. False: it must be new.
    grace     seconds that the session outlives its connection; negative: as long
              as the daemon allows. None: 60, or what an earlier program asked for
              the session if that is longer. session.grace tells.
    timeout   seconds to connect, and to wait for answers.
    reconnect_timeout
              seconds to try again after a cut, over gRPC. None: as long as the
              session stays on the daemon, which is its grace period.
    run_ahead seconds of device time that the program may be ahead of the daemon:
              beyond that an op waits until some are done. math.inf: no bound.
              None: HOLDFAST_RUN_AHEAD_SECONDS, else 2.
    default   whether new tensors are made in this session.

    Over gRPC a daemon may ask who you are, and you may ask it. What is not given is
    the named host's, else the environment's:

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
    if grace is not None and math.isnan(grace):
        raise ValueError(f"grace must be a number of seconds. Got {grace}")
    if attach and not session:
        raise ValueError("connect(attach=True) needs the session's name")
    address, known = _resolve(address or "")
    credentials = _credentials(token, ca, certificate, key, allow_plaintext_token)
    if session and not address:
        _find_a_daemon_that_stays()
    return _C.connect(
        address,
        session or "",
        bool(attach),
        attach is None and bool(session),
        None if grace is None else float(grace),
        float(timeout),
        None if reconnect_timeout is None else float(reconnect_timeout),
        default,
        tuple(given or kept for given, kept in zip(credentials, known, strict=True)),
        None if run_ahead is None else float(run_ahead),
    )


def _find_a_daemon_that_stays():
    """For a session with a name where nobody runs a daemon: the user's own is started.

    Not where the program's tensors are on a private daemon already, which stays for the
    session that gets the name, nor where HOLDFAST_SOCKET names the only place to look.
    """
    current = _C.current_session()
    if os.environ.get("HOLDFAST_SOCKET") or (current and not current.closed):
        return
    if not os.path.exists(_C.default_address().removeprefix("unix:")):
        from holdfast.service import own_daemon

        own_daemon.start_for_session()


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


@function
def cancel():
    """Calls back every op submitted so far that the daemon has not done.

    They are dropped in their order: to read what they would have made is a
    CancelledError that names the line of this call, and the op's where it is known.
    What they would have written in place stays as it is, a backward and an
    optimizer's step are done whole or not at all. Ops submitted afterwards are not
    touched. Returns how many ops were dropped, once they are.

    It is the same as a second Ctrl-C while the daemon is still at what was
    submitted before the first, and as `%holdfast stop` in a notebook.
    """
    session = _C.current_session()
    return 0 if session is None else session.cancel()


# Behind the name under which something was kept that is more than tensors.
_STRUCTURE = ":structure"


@function
def keep(name, value, *, copy=False):
    """Keeps tensors on the daemon after this program ends.

    value is a tensor, a (nested) dict of tensors such as a module's state_dict, or
    what has a state_dict: a module, an optimizer, a scheduler. Dicts, lists and tuples
    may have numbers, strings, booleans and None beside the tensors. None drops what
    the name holds. A later program gets it with connect(session=...) and kept().

    All that one call keeps changes at once: a program that is killed leaves what the
    last call kept, or what the one before it kept. Like any op this does not wait: a
    program that may be killed calls synchronize() after it.

    copy    False: the tensors themselves are kept. What later steps write in place
            (weights, an optimizer's averages) is then kept as it is in the end, while
            numbers beside them stay as they were at the call. True: the daemon keeps
            copies of the tensors as they are now, a checkpoint in which all parts
            belong together; they take their own memory.

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
        gone = [
            known
            for known in session._kept_names()
            if known in (name, name + _STRUCTURE) or known.startswith(name + ".")
        ]
        session._keep_all(gone, [None] * len(gone))
        return
    if isinstance(value, _C.Tensor):
        parts = {name: value}
    else:
        parts = _parts(name, value)
    # What the former call kept and this one does not goes in the same change.
    groups = _groups.setdefault(session.trace_id, {})
    if name not in groups:
        groups[name] = _kept_before(session, name)
    stale = groups[name] - parts.keys()
    session._keep_all([*parts, *stale], [*parts.values(), *[None] * len(stale)], copy)
    groups[name] = set(parts)


# By session: the names under which each call of keep() has kept its parts.
_groups = {}


def _kept_before(session, name):
    """What an earlier program kept with keep(name, ...). Waits, if it did."""
    known = set(session._kept_names()) if session.attached else set()
    if name in known:
        return {name}
    if name + _STRUCTURE not in known:
        return set()
    structure = session.kept()[name + _STRUCTURE].numpy().tobytes()
    parts = {f"{name}.{key}" for key in tensor_keys(structure)}
    return (parts | {name + _STRUCTURE}) & known


def _parts(name, value):
    """What stands for a nested value: tensors by the names they are kept under."""
    import holdfast

    tensors, structure = take_apart(value, "keep", flat=_is_flat(value))
    parts = {f"{name}.{key}": tensor for key, tensor in tensors.items()}
    data = holdfast.frombuffer(bytearray(structure), dtype=holdfast.uint8)
    parts[name + _STRUCTURE] = data.clone()
    return parts


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
    return put_kept_together(_C.default_session().kept(), name)


def put_kept_together(tensors, name, convert=dict, on_host=None):
    """kept() of a session's kept tensors. convert({key: tensor}) makes of them what is
    handed out, on_host what stands where OnHost was kept (_structure)."""
    if name is None:
        plain = {k: v for k, v in tensors.items() if not k.endswith(_STRUCTURE)}
        return convert(plain)
    if name in tensors:
        return convert({name: tensors[name]})[name]
    prefix = name + "."
    found = {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)}
    structure = tensors.get(name + _STRUCTURE)
    if structure is not None:
        return put_together(structure.numpy().tobytes(), convert(found), on_host)
    if not found:
        from holdfast.errors import NotFoundError

        raise NotFoundError(f"nothing is kept under the name {name!r}")
    return convert(found)


def _leave():
    """What the end of the program does with its sessions."""
    for address, name, count, seconds in _C.close_all():
        names = f"{count} kept name{'s' if count != 1 else ''}"
        address = _spoken.get(address, address)
        where = "" if _is_found(address) else f"{address!r}, "
        # None in a program without a terminal.
        if sys.stderr is not None:
            print(
                f"holdfast: session {name!r} stays with {names} for {seconds:g} s: "
                f"connect({where}session={name!r})",
                file=sys.stderr,
                flush=True,
            )
    # Their connections are closed: so may what carried them be.
    if ssh := sys.modules.get("holdfast.service.ssh"):
        ssh.close_all()


def _resolve(address):
    """(address, credentials) of what a program gave: a host's name, ssh://."""
    from holdfast.service import hosts

    found, credentials = hosts.resolve(address)
    if found.startswith("grpc+unix:") and address and address != found:
        _spoken[found] = address
    return found, credentials


# What programs call an address that means nothing to the next one: a tunnel's.
_spoken = {}


_C.set_address_resolver(_resolve)


def _is_found(address):
    """Whether connect() finds the daemon without its address."""
    if os.environ.get("HOLDFAST_ADDRESS"):
        return os.environ["HOLDFAST_ADDRESS"] == address
    return "/holdfast-private-" in address or address == _C.default_address()


atexit.register(_leave)
