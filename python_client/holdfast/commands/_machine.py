# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What `holdfast doctor` looks at. Nothing here changes the machine."""

import os
import platform
import resource
import stat
import subprocess
from pathlib import Path

from holdfast.commands import _gpu
from holdfast.commands._daemon import default_address
from holdfast.commands._finding import Finding
from holdfast.commands._text import size

FEWEST_DESCRIPTORS = 4096  # about four for each local session


def examine(cuda_needed=False):
    """A list of Findings."""
    running = list(_running_daemon())
    answers = any(finding.verdict == "ok" for finding in running)
    remote = answers and not default_address().startswith("unix:")
    return [
        _client(),
        *_package(),
        # Who names an address starts no daemon of their own.
        *_daemon_binary(needed=not (answers or os.environ.get("HOLDFAST_ADDRESS"))),
        *running,
        _shared_memory(),
        _memory(),
        _descriptors(),
        _locked_memory(cuda_needed),
        # The GPU is the daemon's, wherever that is.
        *([] if remote and not cuda_needed else _gpu.examine(cuda_needed)),
    ]


def _client():
    from holdfast import _C

    system = f"Python {platform.python_version()}, {platform.system()}"
    return Finding("ok", "client", f"holdfast {_C.__version__}, {system}")


def _package():
    from holdfast import _distribution

    if found := _distribution.problem():
        what, _, advice = found.rpartition(": ")
        yield Finding("FAIL", "package", what, advice)


def _daemon_binary(needed):
    """What starts private daemons; a machine whose daemon answers needs none."""
    from holdfast import _C
    from holdfast.daemon import find_daemon

    try:
        path = find_daemon()
    except FileNotFoundError as error:
        if needed:
            yield Finding(
                "FAIL",
                "holdfastd",
                "not found, and no daemon runs here: programs have no device",
                f"{error} For a daemon on another machine: HOLDFAST_ADDRESS=host:port",
            )
        else:
            yield Finding(
                "ok", "holdfastd", "not on this machine, which uses a daemon elsewhere"
            )
        return
    try:
        answer = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Finding("FAIL", "holdfastd", f"{path} does not run: {error}")
        return
    version = answer.stdout.strip()
    if answer.returncode or not version:
        yield Finding(
            "FAIL",
            "holdfastd",
            f"{path} does not run: {answer.stderr.strip() or answer.returncode}",
            "a library of its may be missing: see ldd " + path,
        )
    elif version.split()[-1] != _C.__version__:
        yield Finding(
            "note",
            "holdfastd",
            f"{path}, {version}; the client is {_C.__version__}",
            "install the same version of both, unless that is on purpose",
        )
    else:
        yield Finding("ok", "holdfastd", f"{path}, {version}")


def _running_daemon():
    """The daemon that a program would use, if one runs."""
    import holdfast
    from holdfast.errors import HoldfastError

    address = default_address()
    if address.startswith("unix:"):
        path = address.removeprefix("unix:")
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            none = f"none at {path} ({error.strerror})"
            if os.environ.get("HOLDFAST_ADDRESS"):
                yield Finding(
                    "FAIL",
                    "running daemon",
                    f"{none}, which HOLDFAST_ADDRESS names",
                    "start it (systemctl start holdfastd), or unset the variable: "
                    "programs then start private ones",
                )
                return
            none += ": programs start private ones"
            yield Finding("note", "running daemon", none)
            return
        if not stat.S_ISSOCK(mode):
            yield Finding("FAIL", "running daemon", f"{path} is no socket", "remove it")
            return
    try:
        with holdfast.connect(address, grace=0, timeout=5, default=False) as session:
            found = f"{session.server} on {session.device} at {address}"
    except HoldfastError as error:
        yield Finding(
            "FAIL", "running daemon", f"{address} does not answer", str(error)
        )
        return
    yield Finding("ok", "running daemon", found)


def _shared_memory():
    try:
        descriptor = os.memfd_create("holdfast-doctor", os.MFD_ALLOW_SEALING)
    except OSError as error:
        return Finding(
            "FAIL",
            "shared memory",
            f"memfd_create: {error.strerror}",
            "a sandbox or container forbids it; connect over gRPC to a daemon outside",
        )
    try:
        os.ftruncate(descriptor, 1 << 20)
        os.posix_fallocate(descriptor, 0, 1 << 20)
    except OSError as error:
        return Finding("FAIL", "shared memory", f"1 MiB: {error.strerror}")
    finally:
        os.close(descriptor)
    return Finding("ok", "shared memory", "memfd works (/dev/shm is not used)")


def _memory():
    available = _meminfo().get("MemAvailable", 0)
    found = f"{size(available)} available"
    limit = _cgroup_limit()
    if limit is not None:
        found += f", of which this container may take {size(limit)}"
        available = min(available, limit)
    if available < 1 << 30:
        return Finding("note", "memory", found, "less than 1 GiB is little for tensors")
    return Finding("ok", "memory", found)


def _meminfo():
    values = {}
    for line in _read("/proc/meminfo").splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        values[name] = int(words[0]) * 1024 if words[1:] == ["kB"] else int(words[0])
    return values


def _cgroup_limit():
    """Bytes that the control group leaves us, or None."""
    for path in (
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ):
        text = _read(path).strip()
        # Without a limit, version 1 shows a number beyond all memory.
        if text.isdigit() and int(text) < 1 << 60:
            return int(text)
    return None


def _descriptors():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{soft}, can be raised to {hard}"
    if hard != resource.RLIM_INFINITY and hard < FEWEST_DESCRIPTORS:
        return Finding(
            "note",
            "open files",
            found,
            f"a daemon for many wants {FEWEST_DESCRIPTORS} or more: ulimit -Hn, or "
            "LimitNOFILE= in its systemd unit",
        )
    return Finding("ok", "open files", found)


def _locked_memory(needed):
    """A GPU is fed from pinned memory."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY or os.geteuid() == 0:
        return Finding("ok", "locked memory", "no limit")
    return Finding(
        "note",
        "locked memory",
        size(soft),
        "some GPU drivers count pinned memory: LimitMEMLOCK=infinity in the systemd "
        "unit, memlock in /etc/security/limits.conf"
        if needed
        else "",
    )


def _read(path):
    try:
        return Path(path).read_text()
    except OSError:
        return ""
