# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""--http: metrics that Debian's Prometheus reads, health, and who may ask."""

import getpass
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from daemon_users import Authority

import holdfast
from holdfast.daemon import Daemon, find_daemon


@pytest.fixture(scope="module")
def served():
    with Daemon("--http=127.0.0.1:0") as daemon:
        yield daemon


def get(daemon, path, **headers):
    """(status, text) of a request."""
    request = urllib.request.Request(
        f"http://{daemon.http_address}{path}", headers=headers
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(daemon):
    """{'name{labels}': value} of /metrics."""
    status, text = get(daemon, "/metrics")
    assert status == 200
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}


def samples_when(daemon, condition):
    end = time.monotonic() + 60
    while not condition(found := samples(daemon)) and time.monotonic() < end:
        time.sleep(0.02)
    assert condition(found), found
    return found


def run_ops(session, count, size=256):
    x = holdfast.ones(size, size)
    for _ in range(count):
        x = x * 1.0
    assert x.sum().item() == size * size
    return x


@pytest.mark.parametrize("transport", ["shm", "grpc"])
def test_a_session_is_metered(served, transport):
    before = samples(served)
    with holdfast.connect(served.address(transport), session=f"m-{transport}") as s:
        x = run_ops(s, 2000)
        user = getpass.getuser()
        labels = f'{{session="{s.id}",user="{user}",name="m-{transport}"}}'
        # A session's counts are published when its turn is over, behind the reply.
        ops = f"holdfast_session_ops_total{labels}"
        now = samples_when(served, lambda found: found[ops] >= 2001)
        in_use = now[f"holdfast_session_memory_in_use_bytes{labels}"]
        assert in_use >= x.nbytes
        reserved = now[f"holdfast_session_memory_reserved_bytes{labels}"]
        cached = now[f"holdfast_session_memory_cached_bytes{labels}"]
        assert reserved == in_use + cached
        assert now["holdfast_memory_in_use_bytes"] == in_use
        assert now["holdfast_memory_reserved_bytes"] == reserved
        assert now[f"holdfast_session_device_seconds_total{labels}"] > 0
        assert now[f'holdfast_connections{{transport="{transport}"}}'] == 1
        name = 'holdfast_op_calls_total{op="mul"}'
        assert now[name] - before.get(name, 0) == 2000
    events = 'holdfast_session_events_total{event="opened"}'
    ended = 'holdfast_sessions_ended_total{code="OK"}'
    after = samples_when(served, lambda x: x.get(ended, 0) == before.get(ended, 0) + 1)
    assert after[events] == before[events] + 1
    assert f"holdfast_session_ops_total{labels}" not in after
    assert (
        after["holdfast_device_seconds_total"] >= now["holdfast_device_seconds_total"]
    )


def test_histograms_are_cumulative_and_sampled(served):
    with holdfast.connect(served.shm_address) as session:
        run_ops(session, 20000, size=8)
        now = samples(served)
    prefix = 'holdfast_op_duration_seconds_bucket{op="mul",le="'
    buckets = [
        (float(name[len(prefix) : -2]), value)
        for name, value in now.items()
        if name.startswith(prefix)
    ]
    assert buckets == sorted(buckets) and buckets[-1][0] == float("inf")
    assert [n for _, n in buckets] == sorted(n for _, n in buckets)
    count = now['holdfast_op_duration_seconds_count{op="mul"}']
    assert count == buckets[-1][1]
    # One in 64, drawn at random: 5 standard deviations about the mean.
    calls = now['holdfast_op_calls_total{op="mul"}']
    assert abs(count - calls / 64) < 5 * (calls / 64) ** 0.5
    assert 0 < now['holdfast_op_duration_seconds_sum{op="mul"}'] < 60


def test_failures_and_refusals_are_counted(served):
    before = samples(served)
    with holdfast.connect(served.grpc_address):
        with pytest.raises(holdfast.errors.OutOfRangeError):
            holdfast.ones(3)[holdfast.tensor([7])].sum().item()
        with pytest.raises(holdfast.errors.NotFoundError):
            holdfast.connect(served.grpc_address, session="nobody", attach=True)
    after = samples(served)
    refused = 'holdfast_sessions_refused_total{code="NOT_FOUND"}'
    assert after[refused] == before.get(refused, 0) + 1

    def failures(found):
        return sum(v for k, v in found.items() if k.startswith("holdfast_op_failures_"))

    assert failures(after) == failures(before) + 1


def test_who_closes_a_session_is_not_refused_one(served):
    refused = 'holdfast_sessions_refused_total{code="NOT_FOUND"}'
    before = samples(served)
    for _ in range(20):
        with holdfast.connect(served.grpc_address, default=False):
            pass
    opened = 'holdfast_session_events_total{event="opened"}'
    after = samples_when(served, lambda s: s[opened] == before[opened] + 20)
    assert after.get(refused, 0) == before.get(refused, 0)


def test_expiry_of_certificates(tmp_path):
    authority = Authority(tmp_path)
    start = time.time()
    certificate, key = authority.issue("daemon", ["127.0.0.1"], seconds=7200)
    flags = [f"--tls_certificate={certificate}", f"--tls_key={key}"]
    name = "holdfast_tls_certificate_expiry_timestamp_seconds"
    with Daemon("--http=127.0.0.1:0", *flags, f"--tls_client_ca={authority.path}") as d:
        found = samples(d)
        own, ca = (
            f'{name}{{flag="{f}"}}' for f in ("tls_certificate", "tls_client_ca")
        )
        assert start + 7198 <= found[own] <= time.time() + 7200
        assert start + 3590 <= found[ca] <= time.time() + 3600
        # Renewed, and taken away.
        authority.issue("daemon", ["127.0.0.1"], seconds=9000)
        assert samples(d)[own] >= start + 8998
        certificate.unlink()
        assert samples(d)[own] == 0


def test_the_process(served):
    now = samples(served)
    assert abs(now["process_start_time_seconds"] - time.time()) < 3600
    assert now["process_resident_memory_bytes"] > 1 << 20
    assert now["process_open_fds"] > 3


def test_health(served):
    assert get(served, "/healthz") == (200, "ok\n")
    assert get(served, "/readyz") == (200, "ok\n")
    assert get(served, "/elsewhere")[0] == 404


def test_not_ready_without_room():
    with Daemon("--http=127.0.0.1:0", "--max_sessions=1") as daemon:
        with holdfast.connect(daemon.grpc_address, default=False):
            status, text = get(daemon, "/readyz")
            assert status == 503 and "--max_sessions=1" in text
        assert get(daemon, "/readyz")[0] == 200


def test_other_host_names_are_refused(served):
    status, text = get(served, "/api/status", Host="attacker.example")
    assert status == 403 and "attacker.example" in text
    assert get(served, "/api/status", Host="localhost:1")[0] == 200


@pytest.mark.parametrize("address", ["0.0.0.0:0", "nonsense", "127.0.0.1:70000"])
def test_refused_addresses_name_the_flag(address, tmp_path):
    result = subprocess.run(
        [find_daemon(), f"--socket={tmp_path}/d.sock", f"--http={address}"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1 and "[http]" in result.stderr
    expected = "--allow_remote" if address.startswith("0") else "host:port"
    assert expected in result.stderr and address in result.stderr


def test_a_taken_port_is_told(served, tmp_path):
    result = subprocess.run(
        [
            find_daemon(),
            f"--socket={tmp_path}/d.sock",
            f"--http={served.http_address}",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1 and served.http_address in result.stderr


def test_slow_clients_hold_nobody_for_long(served):
    """More connections that send nothing than there are threads."""
    host, port = served.http_address.split(":")
    idle = [socket.create_connection((host, int(port))) for _ in range(8)]
    assert get(served, "/healthz")[0] == 200  # within its own time limit
    for connection in idle:
        connection.close()


def test_grpc_health(served):
    import grpc

    with grpc.insecure_channel(served.grpc_address) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        name = b"holdfast.v1.Holdfast"
        serving = b"\x08\x01"
        assert check(b"", timeout=60) == serving
        assert check(b"\x0a" + bytes([len(name)]) + name, timeout=60) == serving
        with pytest.raises(grpc.RpcError) as error:
            check(b"\x0a\x01x", timeout=60)
        assert error.value.code() == grpc.StatusCode.NOT_FOUND


def test_grpc_health_while_it_ends(tmp_path):
    """NOT_SERVING from SIGTERM on, which may be long before the state is saved."""
    import grpc

    daemon = Daemon("--http=127.0.0.1:0", f"--state_dir={tmp_path}")
    with grpc.insecure_channel(daemon.grpc_address) as channel:
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")
        states = watch(b"", timeout=60)
        assert next(states) == b"\x08\x01"
        daemon.process.terminate()
        assert next(states) == b"\x08\x02"
        states.cancel()
    assert daemon.stop() == 0


def test_promtool_finds_nothing(served):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is missing: apt-get install prometheus")
    with holdfast.connect(served.shm_address, session='odd "name"\\') as session:
        run_ops(session, 200)
        text = get(served, "/metrics")[1]
    result = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert not result.stdout + result.stderr


@pytest.mark.timeout(120)
def test_prometheus_scrapes_the_daemon(served, tmp_path):
    prometheus = shutil.which("prometheus")
    if prometheus is None:
        pytest.skip("prometheus is missing: apt-get install prometheus")
    config = tmp_path / "prometheus.yml"
    config.write_text(
        "scrape_configs:\n"
        "  - job_name: holdfast\n"
        "    scrape_interval: 1s\n"
        f"    static_configs: [{{targets: ['{served.http_address}']}}]\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [
            prometheus,
            f"--config.file={config}",
            f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        with holdfast.connect(served.grpc_address) as session:
            run_ops(session, 1000)
            wanted = samples(served)['holdfast_op_calls_total{op="mul"}']
            query = urllib.parse.quote('holdfast_op_calls_total{op="mul"}')
            found, end = None, time.monotonic() + 60
            while found != wanted and time.monotonic() < end:
                time.sleep(0.2)
                found = ask(f"http://127.0.0.1:{port}/api/v1/query?query={query}")
            assert found == wanted
    finally:
        process.terminate()
        process.wait(60)


def ask(url):
    """The value of the first result, or None."""
    try:
        with urllib.request.urlopen(url, timeout=60) as reply:
            result = json.load(reply)["data"]["result"]
    except OSError:
        return None  # not up yet
    return float(result[0]["value"][1]) if result else None
