# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev deb: Debian packages of the daemon and of the Python client.

holdfast-server is the daemon with the libraries that it carries, as in the bundle,
its systemd unit and the files of deploy/; python3-holdfast is the client.
"""

import hashlib
import os
import shutil

import build
import daemon_folder
import licences
import manual_pages
import wheel_file
from workspace import DIST, ROOT, capture, say

ARCHITECTURE = "amd64"
CONTROL = """\
Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: The Holdfast Authors <holdfast@localhost>
Installed-Size: {kibibytes}
Depends: {depends}
{extra}Section: science
Priority: optional
Description: {summary}
"""
SERVER = "holdfast-server"
SERVER_DEPENDS = "libc6 (>= 2.36), adduser, init-system-helpers (>= 1.54~)"
SERVER_SUMMARY = """\
daemon that holds tensors for the programs of many users
 holdfastd owns a machine's device and keeps tensors there for Python programs
 that reach it over shared memory or gRPC. They outlive the programs."""
# Where there is no /proc (a chroot), ld.so cannot tell where the program lies, and so
# not where the libraries beside it are: then it takes this variable's word.
START = """\
#!/bin/sh
[ -e /proc/self/exe ] || export LD_ORIGIN_PATH=/usr/lib/holdfast/bin
exec /usr/lib/holdfast/bin/holdfastd "$@"
"""
CLIENT = "python3-holdfast"
CLIENT_DEPENDS = "libc6 (>= 2.36), python3 (>= 3.11), python3-numpy"
CLIENT_EXTRA = "Recommends: holdfast-server, python3-rich\n"
CLIENT_SUMMARY = """\
PyTorch-like client of holdfastd
 The package holdfast for Python, and the command of the same name: tensors live
 in a daemon and stay there when the program does not."""
POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then
  adduser --quiet --system --group --no-create-home --home /var/lib/holdfast \\
    --gecos Holdfast holdfast
  # Tokens and keys: root writes them, the daemon's group reads them. Everybody may
  # open client.conf, and whatever else has a mode that says so.
  install -d -o root -g holdfast -m 0751 /etc/holdfast
  deb-systemd-helper enable holdfastd.service >/dev/null || true
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    if [ -z "$2" ]; then
      deb-systemd-invoke start holdfastd.service || true
    else
      # Sessions would not survive what nobody asked for.
      echo "holdfastd goes on running as it was: systemctl restart holdfastd" >&2
    fi
  fi
fi
"""
PRERM = """\
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop holdfastd.service || true
fi
"""
POSTRM = """\
#!/bin/sh
set -e
if [ "$1" = purge ]; then
  deb-systemd-helper purge holdfastd.service >/dev/null 2>&1 || true
  # Users' weights, an admin's tokens and keys: nobody asked to delete these.
  for folder in /var/lib/holdfast /etc/holdfast; do
    [ -d "$folder" ] || continue
    rmdir --ignore-fail-on-non-empty "$folder"
    if [ -d "$folder" ]; then
      echo "holdfast-server: $folder is not empty and stays: rm -r $folder" >&2
    fi
  done
fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
"""
CLIENT_POSTINST = """\
#!/bin/sh
set -e
if [ "$1" = configure ]; then py3compile -p python3-holdfast; fi
"""
CLIENT_PRERM = """\
#!/bin/sh
set -e
py3clean -p python3-holdfast
"""
COMMAND = """\
#!/usr/bin/python3
import sys

from holdfast.cli import main

sys.exit(main())
"""


def configure(_name, parser):
    parser.add_argument(
        "--cuda", action="store_true", help="with the CUDA device's library"
    )
    parser.set_defaults(main=main)


def main(args):
    build.build(cuda=args.cuda)
    for package in make_packages(args.cuda):
        print(package.relative_to(ROOT))


def make_packages(cuda=False):
    """Builds both from what `build` left; returns their paths."""
    return make_server(cuda), make_client()


def make_server(cuda):
    tree = fresh_tree(SERVER)
    folder = tree / "usr/lib/holdfast"
    origins = daemon_folder.stage(folder, cuda)
    daemon_folder.verify(folder)
    start = tree / "usr/bin/holdfastd"
    start.parent.mkdir(parents=True)
    start.write_text(START)
    start.chmod(0o755)
    deploy = ROOT / "deploy"
    put(deploy / "systemd/holdfastd.service", tree / "lib/systemd/system")
    put(deploy / "systemd/holdfastd.default", tree / "etc/default", name="holdfastd")
    for name in ("prometheus", "grafana", "slurm", "tls"):
        shutil.copytree(deploy / name, tree / "usr/share/holdfast" / name)
    put(deploy / "logrotate/holdfastd", tree / "etc/logrotate.d")
    put(ROOT / "docs/operating.md", tree / "usr/share/doc" / SERVER)
    put(ROOT / "proto/config.proto", tree / "usr/share/doc" / SERVER)
    manual_pages.put(
        tree,
        "holdfastd",
        8,
        manual_pages.daemon_page(wheel_file.version()),
        manual_pages.daemon_completion(),
    )
    write_scripts(tree, postinst=POSTINST, prerm=PRERM, postrm=POSTRM)
    (tree / "DEBIAN/conffiles").write_text(
        "/etc/default/holdfastd\n/etc/logrotate.d/holdfastd\n"
    )
    return pack(tree, SERVER, SERVER_DEPENDS, "", SERVER_SUMMARY, origins)


def make_client():
    tree = fresh_tree(CLIENT)
    packages = tree / "usr/lib/python3/dist-packages"
    wheel_file.stage_package(packages / "holdfast")
    origins = wheel_file.stage_extension(packages)
    command = tree / "usr/bin/holdfast"
    command.parent.mkdir(parents=True)
    command.write_text(COMMAND)
    command.chmod(0o755)
    manual_pages.put(
        tree,
        "holdfast",
        1,
        manual_pages.client_page(wheel_file.version()),
        manual_pages.client_completion(),
    )
    write_scripts(tree, postinst=CLIENT_POSTINST, prerm=CLIENT_PRERM)
    return pack(tree, CLIENT, CLIENT_DEPENDS, CLIENT_EXTRA, CLIENT_SUMMARY, origins)


def fresh_tree(name):
    tree = ROOT / "build/deb" / name
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    return tree


def write_scripts(tree, **scripts):
    control = tree / "DEBIAN"
    control.mkdir()
    for name, text in scripts.items():
        (control / name).write_text(text)
        (control / name).chmod(0o755)


def put(source, folder, name=None):
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, folder / (name or source.name))


def pack(tree, name, depends, extra, summary, origins):
    """The package of what is staged in `tree`."""
    documents = tree / "usr/share/doc" / name
    licences.collect(documents / "licences", origins)
    write_copyright(documents)
    version = wheel_file.version()
    fields = {
        "name": name,
        "version": version,
        "architecture": ARCHITECTURE,
        "kibibytes": installed_kibibytes(tree),
        "depends": depends,
        "extra": extra,
        "summary": summary,
    }
    (tree / "DEBIAN/md5sums").write_text(checksums(tree))
    (tree / "DEBIAN/control").write_text(CONTROL.format(**fields))
    set_modes(tree)
    DIST.mkdir(exist_ok=True)
    package = DIST / f"{name}_{version}_{ARCHITECTURE}.deb"
    # Times of the files are the commit's: equal trees give equal packages.
    when = capture(["git", "log", "-1", "--format=%ct"]).strip()
    env = ["env", f"SOURCE_DATE_EPOCH={when}"]
    capture(
        [*env, "dpkg-deb", "--root-owner-group", "-Zzstd", "--build", tree, package]
    )
    say(f"{package.name}: {package.stat().st_size / 2**20:.1f} MB")
    return package


def write_copyright(documents):
    """Ours, and where those of the carried libraries are."""
    text = (ROOT / "LICENSE").read_text()
    carried = sorted(path.name for path in (documents / "licences").iterdir())
    (documents / "copyright").write_text(
        f"Holdfast is (c) The Holdfast Authors, under the licence below. The package "
        f"carries libraries\nwhose licences are in licences/: {', '.join(carried)}\n\n"
        f"{text}"
    )


def content(tree):
    return sorted(
        path
        for path in tree.rglob("*")
        if path.is_file() and not path.is_symlink() and "DEBIAN" not in path.parts
    )


def installed_kibibytes(tree):
    return sum(path.stat().st_size for path in content(tree)) // 1024 + 1


def checksums(tree):
    lines = []
    for path in content(tree):
        digest = hashlib.md5(path.read_bytes()).hexdigest()
        lines.append(f"{digest}  {path.relative_to(tree)}\n")
    return "".join(lines)


def set_modes(tree):
    """What is executable stays so; the builder's umask plays no part."""
    tree.chmod(0o755)
    for path in tree.rglob("*"):
        if path.is_symlink():
            continue
        runs = path.is_dir() or os.access(path, os.X_OK) and path.stat().st_mode & 0o111
        path.chmod(0o755 if runs else 0o644)
