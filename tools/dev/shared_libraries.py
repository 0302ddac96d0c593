# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shared libraries that a binary needs, and how to carry them along."""

import hashlib
import re
import shutil
from pathlib import Path

from workspace import Failure, capture

# The platform itself: a binary must use the machine's own.
GLIBC = re.compile(
    r"(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libutil"
    r"|libanl|libmvec|linux-vdso)\.so"
)
LINE = re.compile(r"^\s*(\S+) => (\S+|not found)")


def needed(binary):
    """Names that the binary asks for directly."""
    return capture(["patchelf", "--print-needed", binary]).split()


def closure(binary, is_platform):
    """All libraries the binary loads, {name: path}, less the platform's."""
    found = {}
    for line in capture(["ldd", binary]).splitlines():
        match = LINE.match(line)
        if not match or is_platform(match.group(1)):
            continue
        if match.group(2) == "not found":
            raise Failure(
                f"{binary} needs {match.group(1)}, which is not installed. "
                "Run ./dev setup."
            )
        found[match.group(1)] = Path(match.group(2)).resolve()
    return found


def carry(libraries, folder, private_names):
    """Copies libraries into a folder where they find each other.

    With private names, `libssl.so.3` becomes `libssl-1a2b3c4d.so.3` throughout,
    so that another copy in the same process is never taken for this one.
    Returns {name: name in the folder}.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = {
        name: private_name(name, path) if private_names else name
        for name, path in libraries.items()
    }
    for name, path in libraries.items():
        copy = folder / names[name]
        shutil.copyfile(path, copy)
        copy.chmod(0o755)
        capture(["patchelf", "--set-soname", names[name], copy])
        point_at(copy, names, "$ORIGIN")
    return names


def point_at(binary, names, rpath):
    """Makes a binary look for its libraries under `rpath` by their names."""
    replacements = []
    for name in needed(binary):
        if names.get(name, name) != name:
            replacements += ["--replace-needed", name, names[name]]
    # Two runs: patchelf 0.14 mixes the strings up when it does both in one.
    capture(["patchelf", "--force-rpath", "--set-rpath", rpath, binary])
    if replacements:
        capture(["patchelf", *replacements, binary])


def require_inside(binary, folder, is_platform):
    """Fails unless all that the binary loads is in the folder or the platform's."""
    inside = folder.resolve()
    for name, path in closure(binary, is_platform).items():
        if inside not in path.parents:
            raise Failure(
                f"{binary.name} takes {name} from {path}, outside {folder}. "
                "Mend its RPATH in tools/dev/shared_libraries.py."
            )


def private_name(name, path):
    stem, dot_so, version = name.partition(".so")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    return f"{stem}-{digest}{dot_so}{version}"


def debian_packages(paths):
    """The packages that the files come from."""
    owners = set()
    for path in paths:
        # Debian 12 lists libraries under /usr/lib or under /lib, as packaged.
        for name in (str(path), str(path).removeprefix("/usr")):
            try:
                listing = capture(["dpkg-query", "-S", name])
            except Failure:
                continue
            owners.update(line.split(":")[0] for line in listing.splitlines())
            break
    return sorted(owners)
