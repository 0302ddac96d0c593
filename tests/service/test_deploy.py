# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""deploy/: every file is tried with the tool that will read it, where one is here."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from daemon_users import Authority

import holdfast
from holdfast.daemon import Daemon, find_daemon

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def run(*command, **options):
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def need(program, package):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is missing: apt-get install {package}")
    return program


# ---- what watches


@pytest.fixture(scope="module")
def metric_names(tmp_path_factory):
    """Names of all metrics of a daemon that has something to show."""
    authority = Authority(tmp_path_factory.mktemp("trust"))
    certificate, key = authority.issue("daemon", ["127.0.0.1"])
    tls = [f"--tls_certificate={certificate}", f"--tls_key={key}"]
    with Daemon("--http=127.0.0.1:0", *tls) as daemon:
        where = {"address": daemon.grpc_address, "ca": authority.path}
        with holdfast.connect(**where):
            with pytest.raises(holdfast.errors.NotFoundError):
                holdfast.connect(**where, session="none", attach=True)
            holdfast.ones(3).sum().item()
            url = f"http://{daemon.http_address}/metrics"
            text = urllib.request.urlopen(url, timeout=60).read().decode()
    names = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    return names | {f"{name}_bucket" for name in names}


def used_names(text):
    return set(re.findall(r"\b(?:holdfast|process)_[a-z_]+", text))


def test_dashboard_shows_what_there_is(metric_names):
    dashboard = json.loads((DEPLOY / "grafana/dashboard.json").read_text())
    expressions = [
        target["expr"] for panel in dashboard["panels"] for target in panel["targets"]
    ]
    assert len(expressions) > 15
    assert used_names(" ".join(expressions)) <= metric_names
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))


def test_prometheus_takes_the_alarms(metric_names):
    promtool = need("promtool", "prometheus")
    folder = DEPLOY / "prometheus"
    result = run(promtool, "check", "config", "scrape.yml", cwd=folder)
    assert result.returncode == 0 and "8 rules found" in result.stdout, result
    rules = (folder / "alerts.yml").read_text()
    expressions = " ".join(re.findall(r"expr: (.*)", rules))
    assert used_names(expressions) <= metric_names
    # The page that says what to do has each of them.
    manual = (DEPLOY.parent / "docs/operating.md").read_text()
    for alarm in re.findall(r"alert: (\w+)", rules):
        assert f"**{alarm}.**" in manual


# ---- systemd


@pytest.fixture
def unit(tmp_path):
    """The unit with a program that exists."""
    text = (DEPLOY / "systemd/holdfastd.service").read_text()
    path = tmp_path / "holdfastd.service"
    path.write_text(text.replace("/usr/lib/holdfast/bin/holdfastd", "/bin/true"))
    return path


def test_systemd_takes_the_unit(unit):
    result = run(need("systemd-analyze", "systemd"), "verify", unit)
    assert result.returncode == 0 and not result.stderr, result.stderr


def test_the_unit_is_hardened(unit):
    result = run(
        *(need("systemd-analyze", "systemd"), "security", "--offline=true"),
        *("--threshold=20", unit),
    )
    assert result.returncode == 0, result.stdout[-2000:]
    assert re.search(r"exposure level for holdfastd.service: [01]\.\d", result.stdout)


def test_the_unit_starts_the_daemon_for_everybody(tmp_path):
    """ExecStart as it is, in folders that are here."""
    text = (DEPLOY / "systemd/holdfastd.service").read_text()
    command = re.search(r"^ExecStart=\S+ (.*) \$HOLDFASTD_FLAGS$", text, re.MULTILINE)
    folders = {
        "/run/holdfast": "RuntimeDirectory",
        "/var/lib/holdfast": "StateDirectory",
    }
    flags = command.group(1)
    for folder, setting in folders.items():
        assert f"\n{setting}=holdfast\n" in text and f"={folder}" in flags
        flags = flags.replace(folder, f"{tmp_path}/{setting}")
    with Daemon(*flags.split()) as daemon:
        path = Path(daemon.shm_address.removeprefix("unix:"))
        assert path.stat().st_mode & 0o777 == 0o666
        with holdfast.connect(daemon.shm_address):
            holdfast.publish("w", holdfast.ones(3), durable=True)
    assert list((tmp_path / "StateDirectory").glob("*.tensors"))


def test_the_units_flags_are_the_daemons(tmp_path):
    default = (DEPLOY / "systemd/holdfastd.default").read_text()
    flags = re.search(r'HOLDFASTD_FLAGS="(.*)"', default).group(1).split()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    flags = [flag.replace("50152", str(port)) for flag in flags]
    with Daemon(*flags) as daemon:
        assert daemon.http_address == f"127.0.0.1:{port}"


# ---- containers


def manifests():
    yaml = pytest.importorskip("yaml", reason="apt-get install python3-yaml")
    text = (DEPLOY / "kubernetes/holdfast.yaml").read_text()
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def misfits(value, kind, models, path):
    """Where `value` is not of Kubernetes' type `kind`, by the classes that its Python
    client has from the API's own description."""
    inner = re.fullmatch(r"(list|dict)[\[(](?:str, )?(.*)[\])]", kind)
    if inner and inner.group(1) == "list":
        for i, item in enumerate(value if isinstance(value, list) else []):
            yield from misfits(item, inner.group(2), models, f"{path}[{i}]")
    elif inner:
        for key, item in value.items() if isinstance(value, dict) else []:
            yield from misfits(item, inner.group(2), models, f"{path}.{key}")
    elif hasattr(models, kind):
        model = getattr(models, kind)
        fields = {name: field for field, name in model.attribute_map.items()}
        for key, item in value.items():
            if key not in fields:
                yield f"{path}.{key}: {kind} has no such field"
                continue
            types = model.openapi_types
            yield from misfits(item, types[fields[key]], models, f"{path}.{key}")
        try:
            model(**{fields[key]: item for key, item in value.items() if key in fields})
        except ValueError as error:  # a field is missing, or must not be this
            yield f"{path}: {error}"
    if inner and not isinstance(value, {"list": list, "dict": dict}[inner.group(1)]):
        yield f"{path}: {kind} instead of {value!r}"
    plain = {"str": str, "int": int, "bool": bool}.get(kind)
    if plain and type(value) is not plain:
        yield f"{path}: {kind} instead of {value!r}"


def test_kubernetes_takes_the_manifests():
    reason = "apt-get install python3-kubernetes"
    models = pytest.importorskip("kubernetes.client.models", reason=reason)
    for kind, manifest in manifests().items():
        assert list(misfits(manifest, f"V1{kind}", models, kind)) == []
    wrong = {"selector": {}, "template": {"spec": {"containers": [{"image": 7}]}}}
    found = list(misfits(wrong, "V1DaemonSetSpec", models, "spec"))
    assert any("str instead of 7" in one for one in found)
    assert any("`name`" in one for one in found)


def test_kubernetes_manifests_fit_together():
    found = manifests()
    assert set(found) == {"Namespace", "DaemonSet", "Service"}
    spec = found["DaemonSet"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels
    assert found["Service"]["spec"]["selector"] == labels
    (container,) = spec["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        get = container[probe]["httpGet"]
        assert get["port"] in ports and get["path"] in ("/healthz", "/readyz")
    for port in found["Service"]["spec"]["ports"]:
        assert port["targetPort"] in ports and port["port"] == ports[port["targetPort"]]
    volumes = {volume["name"] for volume in spec["template"]["spec"]["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    # What the daemon keeps is on the node, in a folder that it may write to.
    (before,) = spec["template"]["spec"]["initContainers"]
    assert {mount["mountPath"] for mount in before["volumeMounts"]} <= mounts
    user = str(spec["template"]["spec"]["securityContext"]["runAsUser"])
    assert before["command"].count(user) == 2
    # Its flags are the daemon's, and its ports those of the image.
    known = run(find_daemon(), "--help").stdout
    image = (DEPLOY / "docker/Dockerfile").read_text()
    for flag in [*container["args"], *re.findall(r'"(--\w+)[="]', image)]:
        assert f"  {flag.split('=')[0]} " in known
    for port in ports.values():
        assert f":{port}" in image
    assert f'"--state_dir={before["args"][0]}"' in image


# ---- Slurm


@pytest.fixture
def job(tmp_path):
    os.chmod(tmp_path, 0o755)
    return {
        **os.environ,
        "SLURM_JOB_ID": "4711",
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_JOB_GID": str(os.getgid()),
        "HOLDFAST_RUN_DIR": str(tmp_path / "jobs"),
        "HOLDFAST_DAEMON": find_daemon(),
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="prologs run as root")
def test_slurm_job_has_a_daemon_of_its_own(job):
    folder = Path(job["HOLDFAST_RUN_DIR"]) / "4711"
    started = run(DEPLOY / "slurm/prolog.sh", env=job)
    assert started.returncode == 0, started.stderr
    pid = int((folder / "pid").read_text())
    try:
        told = run(DEPLOY / "slurm/task_prolog.sh", env=job).stdout
        address = re.fullmatch(r"export HOLDFAST_ADDRESS=(\S+)\n", told).group(1)
        with holdfast.connect(address) as session:
            assert session.transport == "shm"
            assert holdfast.ones(3).sum().item() == 3
        # A second prolog for the same job changes nothing.
        assert run(DEPLOY / "slurm/prolog.sh", env=job).returncode == 0
        assert int((folder / "pid").read_text()) == pid
    finally:
        ended = run(DEPLOY / "slurm/epilog.sh", env=job)
    assert ended.returncode == 0, ended.stderr
    assert not folder.exists() and not running(pid)
    assert run(DEPLOY / "slurm/task_prolog.sh", env=job).stdout == ""
    # Again, as Slurm does after a node failed.
    assert run(DEPLOY / "slurm/epilog.sh", env=job).returncode == 0


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(os.geteuid() != 0, reason="prologs run as root")
def test_slurm_prolog_says_why_no_daemon_started(job):
    result = run(
        DEPLOY / "slurm/prolog.sh", env={**job, "HOLDFAST_DAEMON": "/nowhere/holdfastd"}
    )
    assert result.returncode == 0, "Slurm would drain the node"
    assert "4711" in result.stderr and "/nowhere/holdfastd" in result.stderr


# ---- TLS


def test_certificates(tmp_path):
    need("openssl", "openssl")
    script = DEPLOY / "tls/make_certificates.sh"
    folder = tmp_path / "tls"
    made = run(script, folder, "gpu1.example,10.0.0.7", "ada")
    assert made.returncode == 0, made.stderr
    for name, purpose in (("server", "sslserver"), ("ada", "sslclient")):
        verified = run(
            *("openssl", "verify", "-CAfile", folder / "ca.crt"),
            *("-purpose", purpose, folder / f"{name}.crt"),
        )
        assert verified.returncode == 0, verified.stderr
        assert (folder / f"{name}.key").stat().st_mode & 0o077 == 0
    text = run(
        "openssl", "x509", "-in", folder / "server.crt", "-noout", "-text"
    ).stdout
    assert "DNS:gpu1.example" in text and "IP Address:10.0.0.7" in text
    subject = run("openssl", "x509", "-in", folder / "ada.crt", "-noout", "-subject")
    assert "CN = ada" in subject.stdout
    # Again: a user is added, the rest stays.
    before = (folder / "server.crt").read_bytes()
    assert run(script, folder, "gpu1.example", "ada", "bob").returncode == 0
    assert (folder / "server.crt").read_bytes() == before
    assert (folder / "bob.crt").exists()
    bad = run(script, folder, "gpu1.example", "../eve")
    assert bad.returncode == 1 and "../eve" in bad.stderr


def test_the_daemon_takes_the_certificates(tmp_path):
    """Its side and the users', with the flags that operating.md gives."""
    need("openssl", "openssl")
    folder = tmp_path / "tls"
    made = run(
        DEPLOY / "tls/make_certificates.sh", folder, "localhost,127.0.0.1", "ada"
    )
    assert made.returncode == 0, made.stderr
    flags = [
        f"--tls_certificate={folder}/server.crt",
        f"--tls_key={folder}/server.key",
        f"--tls_client_ca={folder}/ca.crt",
    ]
    with Daemon(*flags) as daemon:
        port = daemon.grpc_address.rsplit(":", 1)[1]
        for host in ("127.0.0.1", "localhost"):
            with holdfast.connect(
                f"{host}:{port}",
                ca=folder / "ca.crt",
                certificate=folder / "ada.crt",
                key=folder / "ada.key",
            ):
                assert holdfast.ones(3).sum().item() == 3
                status = run(
                    *(sys.executable, "-m", "holdfast", "sessions", "--json"),
                    daemon.shm_address,
                )
                (session,) = json.loads(status.stdout)
                assert (session["user"], session["credential"]) == (
                    "ada",
                    "certificate",
                )
        with pytest.raises(holdfast.errors.HoldfastError, match="certificate"):
            holdfast.connect(f"127.0.0.1:{port}", ca=folder / "ca.crt", timeout=20)


def test_shell_scripts_have_no_faults():
    scripts = sorted(DEPLOY.glob("*/*.sh"))
    assert len(scripts) == 4
    for script in scripts:
        assert os.access(script, os.X_OK), script
    result = run(need("shellcheck", "shellcheck"), *scripts)
    assert result.returncode == 0, result.stdout
