# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev deb: the packages, installed into a fresh Debian and run there.

The fresh Debian is made by debootstrap, once: build/debian-root keeps it. The steps
are those of deploy/docker/Dockerfile.
"""

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess

import debian_package
import pytest
from workspace import ROOT

INCLUDE = "python3,python3-numpy,adduser"
# As root in a namespace of mounts and processes of its own, in the new Debian.
ENTER = """
set -e
mount -t proc proc "$0/proc"
mount --rbind /dev "$0/dev"
exec chroot "$0" /bin/sh -e -c "$1"
"""
USE = """
install -d -o holdfast -g holdfast -m 0755 /run/holdfast
setpriv --reuid=holdfast --regid=holdfast --clear-groups --no-new-privs \\
  holdfastd --socket=/run/holdfast/holdfastd.sock --listen=127.0.0.1:0 \\
  --http=127.0.0.1:0 --log_format=json --print_address > /tmp/address &
daemon=$!
while ! [ -s /tmp/address ]; do kill -0 $daemon; sleep 0.1; done
cat /tmp/address
holdfast doctor
python3 -c '
import holdfast as torch
layer = torch.nn.Linear(3, 1)
layer(torch.ones(2, 3)).sum().backward()
print(layer.weight.grad.tolist(), torch.current_session().address)
'
kill -TERM $daemon
wait $daemon
# As docs/operating.md says: root makes a token, the daemon's user reads it.
token=$(holdfast token create alice --file /etc/holdfast/tokens | grep -o 'hf_[^ ]*')
setpriv --reuid=holdfast --regid=holdfast --clear-groups --no-new-privs \\
  holdfastd --socket=/run/holdfast/other.sock --listen=127.0.0.1:50999 \\
  --token_file=/etc/holdfast/tokens --print_address > /tmp/guarded &
daemon=$!
while ! [ -s /tmp/guarded ]; do kill -0 $daemon; sleep 0.1; done
HOLDFAST_ADDRESS=127.0.0.1:50999 HOLDFAST_TOKEN=$token holdfast status | grep 'you are'
kill -TERM $daemon
wait $daemon
# Without a service a program starts one of its own.
python3 -c 'import holdfast; print(holdfast.ones(2).sum().item())'
"""


def as_a_container():
    """What deploy/docker/Dockerfile does behind the installation, as one script."""
    text = (ROOT / "deploy/docker/Dockerfile").read_text().replace("\\\n", "")
    folders = " ; ".join(re.findall(r"install -d -o holdfast [^&\n]*", text))
    (user,) = re.findall(r"^USER (\S+)$", text, re.MULTILINE)
    run = json.loads(re.search(r"^ENTRYPOINT (.*)$", text, re.MULTILINE).group(1))
    check = json.loads(re.search(r"CMD (\[.*\])$", text, re.MULTILINE).group(1))
    enter = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    run = [*enter, "--no-new-privs", *run, "--allow_anonymous"]
    socket = next(flag for flag in run if flag.startswith("--socket=")).split("=")[1]
    return f"""
{folders}
{shlex.join(run)} & daemon=$!
while ! {shlex.join(check)} 2>/dev/null; do kill -0 $daemon; sleep 0.1; done
export HOLDFAST_ADDRESS=unix:{socket}
cd /tmp
python3 -c 'import holdfast; holdfast.publish("x", holdfast.ones(3), durable=True)'
kill -TERM $daemon
wait $daemon
{shlex.join(run)} & daemon=$!
while ! {shlex.join(check)} 2>/dev/null; do kill -0 $daemon; sleep 0.1; done
python3 -c 'import holdfast; print(holdfast.lookup("x").sum().item())'
kill -TERM $daemon
wait $daemon
"""


@pytest.fixture(scope="module")
def packages():
    return debian_package.make_packages()


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    """The folder of a Debian that nothing was installed into yet."""
    if os.geteuid() != 0:
        pytest.skip("a Debian of one's own takes root")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is missing: apt-get install debootstrap")
    kept = ROOT / "build/debian-root"
    if not (kept / "usr/bin/python3").exists():
        shutil.rmtree(kept, ignore_errors=True)
        command = ["debootstrap", "--variant=minbase", f"--include={INCLUDE}"]
        made = subprocess.run(
            [*command, "bookworm", kept], capture_output=True, text=True
        )
        if made.returncode:
            shutil.rmtree(kept, ignore_errors=True)
            # No mirror within reach, or no permission to mount: not ours to fail.
            pytest.skip(f"debootstrap: {made.stdout[-500:]}{made.stderr[-500:]}")
    root = tmp_path_factory.mktemp("debian") / "root"
    subprocess.run(["cp", "-a", kept, root], check=True)
    yield root
    shutil.rmtree(root)


def inside(root, script):
    return subprocess.run(
        [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
            *("/bin/sh", "-c", ENTER, root, script),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        # Nothing of the builder's environment.
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
    )


def field(package, name):
    return subprocess.check_output(["dpkg-deb", "-f", package, name], text=True).strip()


def test_what_is_in_the_packages(packages):
    server, client = packages
    listing = subprocess.check_output(["dpkg-deb", "-c", server], text=True)
    for path in (
        "./usr/lib/holdfast/bin/holdfastd",
        "./usr/bin/holdfastd",
        "./lib/systemd/system/holdfastd.service",
        "./etc/default/holdfastd",
        "./usr/share/holdfast/slurm/prolog.sh",
        "./usr/share/man/man8/holdfastd.8.gz",
        "./usr/share/bash-completion/completions/holdfastd",
    ):
        assert path in listing
    assert all(line.split()[1] == "root/root" for line in listing.splitlines())
    assert field(server, "Package") == "holdfast-server"
    assert field(client, "Package") == "python3-holdfast"
    assert int(field(server, "Installed-Size")) > 10_000


@pytest.mark.parametrize("package", [0, 1])
def test_manual_pages_and_completion(package, packages, tmp_path):
    subprocess.run(["dpkg-deb", "-x", packages[package], tmp_path], check=True)
    name = ("holdfastd", "holdfast")[package]
    (page,) = tmp_path.glob(f"usr/share/man/man*/{name}.*.gz")
    text = gzip.decompress(page.read_bytes()).decode()
    assert text.startswith(".TH")
    assert ("\\-\\-socket_mode" if package == 0 else ".B doctor") in text
    if shutil.which("groff"):
        said = subprocess.run(
            ["groff", "-man", "-Tascii", "-ww"],
            input=text,
            capture_output=True,
            text=True,
        )
        assert said.returncode == 0 and not said.stderr, said.stderr
    # As bash asks when Tab is pressed behind `words`.
    script = tmp_path / f"usr/share/bash-completion/completions/{name}"
    words, expected = [
        ("holdfastd --state", "--state_dir="),
        ("holdfast top --int", "--interval"),
    ][package]
    ask = f"""
        compopt() {{ :; }}
        . {script}
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _{name}; printf '%s ' "${{COMPREPLY[@]}}"
    """
    said = subprocess.run(["bash", "-c", ask], capture_output=True, text=True)
    assert said.stdout.split() == [expected], said.stderr


def test_equal_trees_give_equal_packages(packages):
    before = [package.read_bytes() for package in packages]
    again = debian_package.make_packages()
    assert [package.read_bytes() for package in again] == before


@pytest.mark.timeout(900)
def test_installed_into_a_fresh_debian(packages, debian):
    names = []
    for package in packages:
        shutil.copy(package, debian / "tmp")
        names.append(f"/tmp/{package.name}")
    installed = inside(debian, f"dpkg -i {' '.join(names)}")
    assert installed.returncode == 0, installed.stdout + installed.stderr
    used = inside(debian, USE)
    assert used.returncode == 0, used.stdout + used.stderr
    assert '"socket": "/run/holdfast/holdfastd.sock"' in used.stdout
    assert "FAIL" not in used.stdout and "/usr/bin/holdfastd" in used.stdout
    grad, guarded, total = used.stdout.splitlines()[-3:]
    assert guarded.startswith("you are alice, user")
    assert grad == "[[2.0, 2.0, 2.0]] unix:/run/holdfast/holdfastd.sock"
    assert total == "2.0"
    events = [line for line in used.stderr.splitlines() if '"event":"opened"' in line]
    assert events and '"trace_id":"' in events[0]

    container = inside(debian, as_a_container())
    assert container.returncode == 0, container.stdout + container.stderr
    assert container.stdout.splitlines()[-1] == "3.0"

    # Without /proc the daemon finds the libraries that it carries, too.
    bare = subprocess.run(
        ["chroot", debian, "/usr/bin/holdfastd", "--version"],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )
    assert bare.stdout.startswith("holdfastd "), bare.stderr

    # Settings survive removal; a purge leaves what is users' and admins' alone.
    assert inside(debian, "dpkg -r holdfast-server python3-holdfast").returncode == 0
    assert (debian / "etc/default/holdfastd").exists()
    weights = debian / "var/lib/holdfast/names/weights"
    weights.parent.mkdir(parents=True, exist_ok=True)
    weights.write_text("a month of training")
    purged = inside(debian, "dpkg -P holdfast-server python3-holdfast")
    assert purged.returncode == 0, purged.stderr
    assert "/var/lib/holdfast is not empty and stays" in purged.stderr
    assert weights.exists()
    assert "/etc/holdfast is not empty and stays" in purged.stderr
    assert (debian / "etc/holdfast/tokens").exists()
    for folder in ("var/lib/holdfast", "etc/holdfast"):
        shutil.rmtree(debian / folder)
    left = [
        path
        for folder in ("etc", "usr", "lib", "var/lib")
        for path in (debian / folder).rglob("*holdfast*")
        if "dpkg" not in str(path) and "__pycache__" not in str(path)
    ]
    assert not left
