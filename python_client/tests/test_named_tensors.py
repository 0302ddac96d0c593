# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""publish, lookup, published, unpublish: over both transports, across sessions."""

import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest


def run(code, address, timeout=60):
    """A program of its own on the daemon; returns (exit status, stdout)."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=timeout,
        env={**os.environ, "HOLDFAST_ADDRESS": address},
    )
    return result.returncode, result.stdout.strip()


@pytest.fixture
def name(torch, request):
    """A name that nothing else uses."""
    name = request.node.name.replace("[", "-").strip("]")
    yield name
    for version in torch.published():
        if version.name.startswith(name):
            torch.unpublish(version.name)


@pytest.fixture
def other(torch, daemon, transport):
    """Makes the default session another one, and back."""
    before = torch.current_session()
    with torch.connect(daemon.address(transport)) as session:
        yield session
        torch.set_default_session(before)


def test_another_session_reads_what_was_published(torch, name, daemon, transport):
    made = torch.publish(name, torch.arange(6.0).reshape(2, 3))
    assert (made.name, made.version, made.tensors) == (name, 1, 1)
    for there in ("shm", "grpc"):
        status, out = run(
            f"""
            import holdfast as torch
            x = torch.lookup({name!r})
            print(x.tolist(), (x + 1).sum().item(), x.numpy().shape)
            """,
            daemon.address(there),
        )
        assert (status, out) == (0, "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] 21.0 (2, 3)")


def test_structures_come_back_as_they_were(torch, name):
    a, b = torch.ones(2), torch.arange(3)
    value = {
        "state": {0: {"step": 3, "exp_avg": a}, 1: {"step": 4.5, "exp_avg": b}},
        "groups": [{"lr": 0.1, "names": ("x", None, True), "inf": float("inf")}],
        "state.0.exp_avg": torch.zeros(1),  # the same path by another way
    }
    torch.publish(name, value)
    found = torch.lookup(name)
    assert found["groups"] == value["groups"]
    assert list(found["state"]) == [0, 1]
    assert found["state"][0]["step"] == 3 and found["state"][1]["step"] == 4.5
    assert found["state"][0]["exp_avg"].tolist() == [1, 1]
    assert found["state"][1]["exp_avg"].tolist() == [0, 1, 2]
    assert found["state.0.exp_avg"].tolist() == [0]


def test_a_module_serves_from_the_one_copy(torch, name, other):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16))
    model.eval()
    x = torch.rand(4, 8)
    expected = model(x).detach().numpy().copy()
    torch.publish(name, model)
    weights = torch.lookup(name)
    assert list(weights) == list(model.state_dict())
    out = torch.func.functional_call(model, weights, (x,))
    np.testing.assert_array_equal(out.numpy(), expected)


def test_a_snapshot_not_the_tensor(torch, name):
    x = torch.zeros(3)
    torch.publish(name, {"x": x, "view": x[1:]})
    x.add_(1)
    found = torch.lookup(name)
    assert found["x"].tolist() == [0, 0, 0] and found["view"].tolist() == [0, 0]
    assert x.tolist() == [1, 1, 1]


def test_small_arrays_are_up_to_date(torch, name):
    array = np.zeros(3, np.float32)
    x = torch.from_numpy(array)
    array[:] = 7
    torch.publish(name, x)
    assert torch.lookup(name).tolist() == [7, 7, 7]


def test_writing_is_an_error_that_names_it(torch, name):
    torch.publish(name, {"w": torch.ones(4), "steps": torch.zeros(1)})
    found = torch.lookup(name)
    w = found["w"]
    for write in (
        lambda: w.add_(1),
        lambda: w[1:].zero_(),
        lambda: w.detach().mul_(2),
        lambda: w.data.fill_(3),
        lambda: w.view(2, 2).copy_(torch.zeros(2, 2)),
        lambda: torch.optim.SGD([w], lr=0.1),
    ):
        with pytest.raises((RuntimeError, ValueError)) as error:
            optimizer = write()
            if isinstance(optimizer, torch.optim.Optimizer):
                w.grad = torch.ones(4)
                optimizer.step()
        assert name in str(error.value) and "read-only" in str(error.value)
    assert w.tolist() == [1, 1, 1, 1]
    clone = w.clone()
    assert clone.add_(1).tolist() == [2, 2, 2, 2]


def test_gradients_flow_to_published_leaves(torch, name):
    torch.publish(name, torch.tensor([1.0, 2.0]))
    w = torch.lookup(name).requires_grad_()
    (w * w).sum().backward()
    assert w.grad.tolist() == [2, 4]
    with torch.no_grad(), pytest.raises(RuntimeError, match="read-only"):
        w -= 0.1 * w.grad


def test_a_new_version_leaves_the_old_to_its_readers(torch, name, other):
    torch.publish(name, {"a": torch.zeros(2), "b": torch.zeros(2)})
    old = torch.lookup(name)
    assert torch.publish(name, {"a": torch.ones(2), "b": torch.ones(2)}).version == 2
    new = torch.lookup(name)
    assert [t.tolist() for t in old.values()] == [[0, 0]] * 2
    assert [t.tolist() for t in new.values()] == [[1, 1]] * 2
    again = torch.lookup(name, version=1)
    assert again["a"].tolist() == [0, 0]
    del old, again
    torch.synchronize()
    with pytest.raises(LookupError, match="no version 1 any more"):
        torch.lookup(name, version=1)
    with pytest.raises(LookupError, match="no version 3 yet. The latest is 2"):
        torch.lookup(name, version=3)
    with pytest.raises(ValueError, match="count from 1"):
        torch.lookup(name, version=0)


def test_a_publishers_death_is_a_non_event(torch, name, daemon, transport):
    status, out = run(
        f"""
        import os, signal
        import holdfast as torch
        torch.publish({name!r}, {{"w": torch.full((1000,), 3.0)}})
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        daemon.address(transport),
    )
    assert status == -signal.SIGKILL
    assert torch.lookup(name)["w"].sum().item() == 3000


def test_writable_is_one_memory(torch, name, daemon, transport):
    x = torch.zeros(3)
    torch.publish(name, x, writable=True)
    status, out = run(
        f"""
        import holdfast as torch
        x = torch.lookup({name!r})
        x.add_(5)
        torch.synchronize()
        """,
        daemon.address(transport),
    )
    assert status == 0
    assert x.tolist() == [5, 5, 5]
    torch.publish(name + "-frozen", torch.lookup(name))
    with pytest.raises(RuntimeError, match="is read-only and cannot be published"):
        torch.publish(name + "-again", torch.lookup(name + "-frozen"), writable=True)


def test_list_and_unpublish(torch, name):
    for i in range(300):
        torch.publish(f"{name}-{i:03}", torch.ones(1))
    mine = [v for v in torch.published() if v.name.startswith(name)]
    assert [v.name for v in mine] == [f"{name}-{i:03}" for i in range(300)]
    assert all(v.version == 1 and v.bytes >= 4 and not v.durable for v in mine)
    held = torch.lookup(f"{name}-000")
    for version in mine:
        torch.unpublish(version.name)
    assert not [v for v in torch.published() if v.name.startswith(name)]
    assert held.tolist() == [1]
    with pytest.raises(LookupError, match="nothing that you may read"):
        torch.lookup(f"{name}-000")
    with pytest.raises(LookupError, match=name):
        torch.unpublish(name)


def test_memory_comes_back(torch, name):
    from holdfast import _stats

    def published_bytes():
        return _stats.parse(torch.current_session()._stats())["published_bytes"]

    before = published_bytes()
    torch.publish(name, torch.ones(1 << 20))
    assert published_bytes() - before == 4 << 20
    held = torch.lookup(name)
    torch.publish(name, torch.ones(1 << 20))
    assert published_bytes() - before == 8 << 20
    del held
    torch.synchronize()
    assert published_bytes() - before == 4 << 20
    torch.unpublish(name)
    assert published_bytes() == before


def test_bad_arguments(torch, name):
    with pytest.raises(TypeError, match="at least one tensor"):
        torch.publish(name, {})
    with pytest.raises(TypeError, match=r"not set \(a.0\)"):
        torch.publish(name, {"a": [set()], "b": torch.ones(1)})
    with pytest.raises(TypeError, match="readers"):
        torch.publish(name, torch.ones(1), readers="me")
    with pytest.raises(RuntimeError, match="1 to 256 bytes"):
        torch.publish("", torch.ones(1))
    with pytest.raises(RuntimeError, match="1 to 256 bytes"):
        torch.publish("n" * 257, torch.ones(1))
    with pytest.raises(RuntimeError, match="durable or writable"):
        torch.publish(name, torch.ones(1), durable=True, writable=True)
    with pytest.raises(RuntimeError, match="--state_dir"):
        torch.publish(name, torch.ones(1), durable=True)
    with pytest.raises(RuntimeError, match="takes [0-9]+ bytes for 20000 tensors"):
        x = torch.ones(1)
        torch.publish(name, [x] * 20000)
    with pytest.raises(LookupError, match=name):
        torch.lookup(name)  # nothing of it appeared
    bad = torch.nn.functional.embedding(torch.tensor([5]), torch.ones(2, 2))
    with pytest.raises(IndexError):
        torch.publish(name, {"good": torch.ones(1), "bad": bad})
    with pytest.raises(LookupError):
        torch.lookup(name)
