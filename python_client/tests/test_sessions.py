# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""connect, keep, attach, seeds, processes."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest


def run(code, timeout=60, **env):
    """A program of its own; returns (exit status, stdout, stderr)."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **env},
    )
    return result.returncode, result.stdout.strip(), result.stderr


def test_session_object(torch, daemon, transport):
    with torch.connect(daemon.address(transport), default=False) as session:
        assert session.transport == transport
        assert session.device == "cpu"
        assert session.server.startswith("holdfastd")
        assert not session.closed
        session.synchronize()
        assert session != torch.current_session()
        assert torch.ones(1)._session == torch.current_session()
    assert session.closed
    assert "closed" in repr(session)


def test_address_variable(daemon, transport):
    status, out, err = run(
        """
        import holdfast as torch
        print((torch.ones(3) + 1).sum().item(), torch.current_session().transport)
        """,
        HOLDFAST_ADDRESS=daemon.address(transport),
    )
    assert (status, out) == (0, f"6.0 {transport}"), err


def test_private_daemon_starts_and_stops_with_the_program(tmp_path):
    code = """
        import holdfast as torch
        print(torch.arange(4).sum().item())
        print(torch.current_session().transport)
    """
    env = dict(
        HOLDFAST_ADDRESS="",
        HOLDFAST_SOCKET=str(tmp_path / "none.sock"),
        TMPDIR=str(tmp_path),
    )
    status, out, err = run(code, **env)
    assert (status, out) == (0, "6\nshm"), err
    deadline = time.monotonic() + 60
    while daemons(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not daemons(tmp_path)


def daemons(folder):
    """Process ids of all holdfastd whose socket is in there."""
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    name, *flags = file.read().split(b"\0")
            except OSError:
                continue
            if name.endswith(b"holdfastd") and any(
                bytes(folder) in flag for flag in flags
            ):
                found.add(int(entry))
    return found


def test_kept_tensors_outlive_a_killed_program(torch, daemon, transport):
    address = daemon.address(transport)
    status, out, err = run(
        f"""
        import os, signal
        import holdfast as torch
        torch.connect({address!r}, session="kept-{transport}", grace=-1)
        w = torch.arange(4.0, requires_grad=True)
        torch.keep("w", w)
        torch.keep("model", {{"a": torch.ones(2), "b": {{"c": torch.zeros(1)}}}})
        torch.synchronize()
        print("kept", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    assert (status, out) == (-signal.SIGKILL, "kept"), err
    session = torch.connect(
        address, session=f"kept-{transport}", attach=True, default=False
    )
    before = torch.current_session()
    torch.set_default_session(session)
    try:
        w = torch.kept("w")
        assert w.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert w.requires_grad
        model = torch.kept("model")
        assert {k: v.tolist() for k, v in model.items()} == {"a": [1, 1], "b.c": [0]}
        (w * 2).sum().backward()
        assert w.grad.tolist() == [2.0] * 4
        torch.keep("w", None)
        torch.keep("model", None)
        assert torch.kept() == {}
        with pytest.raises(LookupError, match="'w'"):
            torch.kept("w")
    finally:
        torch.set_default_session(before)
        session.close()


def test_attach_to_an_unknown_name(torch, daemon, transport):
    with pytest.raises(Exception, match="nobody"):
        torch.connect(
            daemon.address(transport), session="nobody", attach=True, default=False
        )
    with pytest.raises(ValueError, match="name"):
        torch.connect(daemon.address(transport), attach=True, default=False)


def test_disconnect_keep_leaves_the_session(torch, daemon, transport):
    name = f"left-{transport}"
    before = torch.current_session()
    try:
        torch.connect(daemon.address(transport), session=name)
        torch.keep("x", torch.full((3,), 2.0))
        torch.disconnect(keep=True)
        torch.connect(daemon.address(transport), session=name, attach=True)
        assert torch.kept("x").tolist() == [2.0] * 3
        torch.disconnect()
    finally:
        torch.set_default_session(before)


def test_keep_takes_what_has_a_state_dict(daemon, transport, torch):
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.125)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    model(torch.ones(4, 3)).sum().backward()
    optimizer.step()
    torch.keep("model", model)
    torch.keep("optimizer", optimizer)
    torch.keep("scheduler", scheduler)
    assert set(torch.kept("model")) == {"weight", "bias"}
    fresh = torch.optim.Adam(model.parameters())
    fresh.load_state_dict(torch.kept("optimizer"))
    assert fresh.param_groups[0]["lr"] == 0.125
    for p in model.parameters():
        assert torch.equal(fresh.state[p]["exp_avg"], optimizer.state[p]["exp_avg"])
    assert torch.kept("scheduler") == scheduler.state_dict()
    torch.keep("odd", [1, (torch.ones(2), None), {"a": "b"}])
    one, (tensor, none), rest = torch.kept("odd")
    assert (one, tensor.tolist(), none, rest) == (1, [1, 1], None, {"a": "b"})
    # What was more than tensors may become tensors.
    torch.keep("odd", {"x": torch.zeros(1)})
    assert torch.kept("odd")["x"].tolist() == [0]
    assert not any(":" in name for name in torch.kept())
    for name in ("model", "optimizer", "scheduler", "odd"):
        torch.keep(name, None)
    assert torch.kept() == {}


def test_keep_replaces_all_that_the_name_held(torch):
    torch.keep("m", {"a": torch.zeros(1), "b": torch.zeros(1)})
    torch.keep("m.best", torch.ones(1))
    torch.keep("m", {"a": torch.full((1,), 2.0)})
    assert {k: v.tolist() for k, v in torch.kept("m").items()} == {"a": [2]}
    assert torch.kept("m.best").tolist() == [1]
    torch.keep("m", torch.full((1,), 3.0))
    assert torch.kept("m").tolist() == [3]
    torch.keep("m", None)
    assert torch.kept() == {}


def test_keep_of_copies_is_a_checkpoint(torch):
    x = torch.zeros(2, requires_grad=True)
    torch.keep("live", {"x": x})
    torch.keep("then", {"x": x, "view": x[1:]}, copy=True)
    with torch.no_grad():
        x.add_(1)
    assert torch.kept("live")["x"].tolist() == [1, 1]
    then = torch.kept("then")
    assert (then["x"].tolist(), then["view"].tolist()) == ([0, 0], [0])
    assert then["x"].requires_grad and then["x"].is_leaf
    torch.keep("live", None)
    torch.keep("then", None)


def test_keep_of_what_failed_leaves_what_was_kept(torch):
    torch.keep("w", {"a": torch.zeros(1), "b": torch.zeros(1)})
    broken = torch.arange(3)[torch.tensor([7])]
    torch.keep("w", {"a": torch.ones(1), "b": broken}, copy=True)
    with pytest.raises(IndexError):
        broken.tolist()
    torch.keep("w", None)


def test_keep_takes_nothing_else(torch):
    with pytest.raises(TypeError, match="keep.*lr"):
        torch.keep("model", {"lr": object()})
    with pytest.raises(ValueError, match="are taken"):
        torch.keep("model:structure", torch.ones(1))


def test_seeds(torch):
    torch.manual_seed(11)
    a = torch.rand(8)
    torch.manual_seed(11)
    assert torch.equal(torch.rand(8), a)
    assert torch.initial_seed() == 11
    torch.manual_seed(-1)
    drawn = torch.seed()
    assert torch.initial_seed() == drawn


def test_ctrl_c_ends_a_wait_and_the_session_goes_on(daemon, transport):
    status, out, err = run(
        f"""
        import os, signal, threading, time
        import holdfast as torch
        torch.connect({daemon.address(transport)!r})
        x = torch.rand(1500, 1500)
        y = x
        for _ in range(60):
            y = (y @ x) * 0.001
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        start = time.monotonic()
        try:
            y.sum().item()
            print("finished early")
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - start < 2)
        print((torch.ones(3) + 1).sum().item())
        """
    )
    assert status == 0, err
    assert out.splitlines()[0] in ("interrupted True", "finished early")
    assert out.splitlines()[1] == "6.0"


def test_import_is_light():
    status, out, err = run(
        "import sys, holdfast; print('numpy' in sys.modules, 'inspect' in sys.modules)"
    )
    assert (status, out) == (0, "False False"), err


def test_versions_agree():
    import holdfast

    assert holdfast.__version__ == holdfast._C.__version__


@pytest.fixture
def back(torch):
    """The test may change the default session."""
    before = torch.current_session()
    yield
    torch.set_default_session(before)


OTHER = {"shm": "grpc", "grpc": "shm"}


def test_detach_and_go_on_elsewhere(torch, back, daemon, transport):
    name = f"moves-{transport}"
    there = torch.connect(daemon.address(transport), session=name)
    assert not there.attached
    tied = torch.arange(6.0)
    torch.keep("w", {"a": tied, "b": tied[2:], "big": torch.ones(500_000)})
    torch.manual_seed(5)
    torch.detach()
    assert there.closed
    # From another process, over the other transport.
    status, out, err = run(
        f"""
        import holdfast as torch
        session = torch.connect(session={name!r})
        w = torch.kept("w")
        print(session.attached, session.transport, w["a"].tolist())
        w["b"].mul_(10)          # the same memory as "a"
        w["big"].add_(1)
        print(w["a"].numpy().sum(), w["big"].numpy().sum())
        index = torch.tensor([1, 0])
        print(w["a"][index].tolist())
        torch.keep("index", index)
        torch.detach()
        """,
        HOLDFAST_ADDRESS=daemon.address(OTHER[transport]),
    )
    assert (status, out.splitlines()) == (
        0,
        [
            f"True {OTHER[transport]} [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]",
            "141.0 1000000.0",
            "[1.0, 0.0]",
        ],
    ), err
    session = torch.connect(daemon.address(transport), session=name)
    assert session.attached and session.transport == transport
    kept = torch.kept()
    assert kept["w.a"].tolist() == [0, 1, 20, 30, 40, 50]
    assert kept["w.b"].tolist() == [20, 30, 40, 50]
    assert kept["w.big"].numpy()[-1] == 2
    assert torch.ones(3)[kept["index"]].tolist() == [1, 1]
    torch.disconnect()


def test_a_session_in_use_is_not_taken_by_its_name(torch, back, daemon, transport):
    name = f"used-{transport}"
    address = daemon.address(transport)
    with torch.connect(address, session=name, default=False) as session:
        with pytest.raises(RuntimeError, match="a program uses it"):
            torch.connect(address, session=name, default=False)
        with pytest.raises(RuntimeError, match="already"):
            torch.connect(address, session=name, attach=False, default=False)
        with torch.connect(address, session=name, attach=True, default=False) as taken:
            assert taken.attached
            with pytest.raises(Exception, match="took over"):
                session.synchronize()


def test_detach_needs_a_name(torch, back, daemon, transport):
    session = torch.connect(daemon.address(transport))
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="session with a name"):
        torch.detach()
    assert not session.closed and (x + 1).tolist() == [2, 2]
    torch.disconnect()
