# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors that outlive their program, and are shared between programs."""

import os

import holdfast
import holdfast_torch
import pytest
import torch
from training_programs import KEPT_TRAINING, TRAINING

STEPS = 12
CUTS = int(os.environ.get("HOLDFAST_TORCH_CUTS", "20"))


@pytest.fixture
def session(daemon, transport, request):
    """A session with a name, of this test's own."""
    name = request.node.name.translate(str.maketrans("[]-", "___"))
    with holdfast_torch.connect(daemon.address(transport), session=name) as session:
        yield session
    holdfast_torch.close()


def again(session):
    """Leaves the session and goes on with it, as another program would."""
    address, name = session.address, session.name
    holdfast_torch.detach()
    return holdfast_torch.connect(address, session=name)


def test_kept_tensors_are_the_very_storages(session):
    model = torch.nn.Linear(64, 64).to("holdfast")
    holdfast_torch.keep("model", model)
    with torch.no_grad():
        model.weight.add_(1)  # after keep(): the tensor itself is kept
    expected, before = model.weight.cpu(), holdfast_torch.status()["bytes_in_use"]
    del model
    with again(session) as later:
        assert later.attached
        left = holdfast_torch.kept("model")
        assert left.keys() == {"weight", "bias"}
        assert torch.equal(left["weight"].cpu(), expected)
        assert holdfast_torch.status()["bytes_in_use"] == before
        with torch.no_grad():
            left["weight"].zero_()
        again_left = holdfast_torch.kept("model")["weight"]
        assert not again_left.any().item(), "the same memory"
        model = torch.nn.Linear(64, 64, device="meta")
        model.load_state_dict(left, assign=True)
        assert model.weight.data_ptr() == left["weight"].data_ptr()
        assert holdfast_torch.status()["bytes_in_use"] <= before + 1024


def test_tied_weights_stay_tied(session):
    whole = torch.arange(12.0, device="holdfast")
    holdfast_torch.keep("tied", {"whole": whole, "same": whole, "tail": whole[6:]})
    with again(session):
        left = holdfast_torch.kept("tied")
        assert left["same"].data_ptr() == left["whole"].data_ptr()
        assert left["tail"].data_ptr() - left["whole"].data_ptr() == 24
        left["whole"].add_(1)
        assert left["tail"].tolist() == [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]


def test_structures_come_back_as_they_were(session):
    weight = torch.ones(2, dtype=torch.bfloat16, device="holdfast")
    value = {"list": [weight, 3, None], "count": torch.tensor(7.0), "text": "a"}
    value["nested"] = {1: (torch.tensor([1, 2]), True)}
    holdfast_torch.keep("value", value)
    with again(session):
        left = holdfast_torch.kept("value")
    assert left["list"][1:] == [3, None] and left["text"] == "a"
    assert left["list"][0].device.type == "holdfast"
    assert left["list"][0].dtype == torch.bfloat16
    assert left["count"].device.type == "cpu" and left["count"].item() == 7
    pair = left["nested"][1]
    assert isinstance(pair, tuple) and pair[0].tolist() == [1, 2] and pair[1] is True


def test_an_optimizer_goes_on(session):
    weight = torch.nn.Parameter(torch.ones(3, device="holdfast"))
    optimizer = torch.optim.Adam([weight], lr=0.1)
    for _ in range(3):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    holdfast_torch.keep("optimizer", optimizer)
    holdfast_torch.keep("weight", weight)
    with again(session):
        weight = torch.nn.Parameter(holdfast_torch.kept("weight"))
        later = torch.optim.Adam([weight], lr=1.0)
        later.load_state_dict(holdfast_torch.kept("optimizer"))
        state = later.state[weight]
        assert later.param_groups[0]["lr"] == 0.1
        assert state["step"].item() == 3 and state["step"].device.type == "cpu"
        weight.grad = torch.ones_like(weight)
        later.step()
        assert weight.tolist() == pytest.approx([0.6] * 3, abs=1e-5)


def test_what_cannot_be_kept_is_named(session):
    with pytest.raises(TypeError, match="meta"):
        holdfast_torch.keep("x", torch.ones(2, device="meta"))
    with pytest.raises(TypeError, match="keep.*object"):
        holdfast_torch.keep("x", {"a": object()})
    with pytest.raises(LookupError, match="nothing is kept under the name 'none'"):
        holdfast_torch.kept("none")


def test_a_killed_training_goes_on_bit_by_bit(daemon, transport, start, run):
    address = daemon.address(transport)
    undisturbed = run(KEPT_TRAINING, address, f"whole_{transport}", STEPS, 0)
    name = f"killed_{transport}"
    seen = []
    for steps_before in (3, 4):  # killed twice, each time in the midst of its work
        program = start(KEPT_TRAINING, address, name, STEPS, 0.05)
        seen += program.lines(steps_before)
        program.kill()
    rest = run(KEPT_TRAINING, address, name, STEPS, 0)
    losses = {}
    for line in [*seen, *rest.splitlines()]:
        if not line.startswith("goes on"):
            step, loss = line.split()
            assert losses.setdefault(step, loss) == loss, "a step done twice differs"
    whole = dict(line.split() for line in undisturbed.splitlines())
    assert len(whole) == STEPS and losses == whole
    assert rest.startswith("goes on after")


def test_cut_connections_change_nothing(daemon, run):
    from tests.faults.chaos_proxy import ChaosProxy

    steps = max(12, 3 * CUTS // 2)
    expected = run(TRAINING, daemon.grpc_address, steps)
    proxy = ChaosProxy(daemon.grpc_address, seed=3, every=2_000, cuts=CUTS)
    try:
        found = run(TRAINING, proxy.address, steps)
        assert proxy.cuts == CUTS, proxy.events
    finally:
        proxy.close()
    assert found == expected and len(found.splitlines()) == steps


def test_programs_of_both_packages_share_one_copy(daemon, transport):
    with holdfast_torch.connect(daemon.address(transport)) as session:
        holdfast_torch.publish("shared", torch.nn.Linear(3, 2).to("holdfast"))
        holdfast_torch.publish("mine", torch.arange(4.0, device="holdfast"))
        with holdfast.connect(daemon.address(transport), default=False) as other:
            holdfast.set_default_session(other)
            theirs = holdfast.lookup("shared")
            values = theirs["weight"].tolist()
            holdfast.publish("theirs", {"x": holdfast.ones(2), "n": 3}, writable=True)
            before = holdfast_torch.status()["bytes_in_use"]
            holdfast.set_default_session(session)
            holdfast_torch.forget()
            found = holdfast_torch.lookup("shared")
            assert found["weight"].tolist() == values
            pair = holdfast_torch.lookup("theirs")
            assert pair["n"] == 3
            pair["x"].add_(1)
            torch.holdfast.synchronize()
            holdfast.set_default_session(other)
            assert holdfast.lookup("theirs")["x"].tolist() == [2.0, 2.0]
            assert holdfast_torch.status()["bytes_in_use"] <= before + 2048
            holdfast.set_default_session(session)
            holdfast_torch.forget()
        with pytest.raises(RuntimeError):
            found["weight"].add_(1)
            found["weight"].cpu()
    holdfast_torch.close()


def test_the_end_of_a_program_ends_its_session(daemon, transport, run):
    source = """
    import sys, torch, holdfast_torch
    holdfast_torch.connect(sys.argv[1], session=sys.argv[2] or None)
    x = torch.ones(3, device="holdfast")
    holdfast_torch.keep("x", x)
    """
    address = daemon.address(transport)
    run(source, address, "")
    name = f"ended_{transport}"
    run(source, address, name)
    with holdfast_torch.connect(address, session=name) as session:
        assert session.attached and holdfast_torch.kept("x").tolist() == [1.0] * 3
        names = {s["name"] for s in _sessions(session)}
        assert name in names
    holdfast_torch.close()


def _sessions(session):
    from holdfast import _stats

    return _stats.parse(session._stats())["sessions"]


def test_cancel_drops_what_has_not_run(session):
    x = torch.rand(400, 400, device="holdfast")
    torch.holdfast.synchronize()
    for _ in range(300):
        x = x @ x
    dropped = holdfast_torch.cancel()
    assert dropped > 0
    with pytest.raises(torch.AcceleratorError, match="cancel"):
        x.cpu()
    assert torch.ones(2, device="holdfast").sum().item() == 2
