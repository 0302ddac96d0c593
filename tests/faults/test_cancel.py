# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What a program called back does not run; what it submits afterwards does."""

import inspect
import math
import os
import signal
import threading

import pytest
from programs import wait_until
from proxy import Proxy

import holdfast
from holdfast import _stats
from holdfast.errors import CancelledError

SIZE = 1024  # a product of these takes tens of milliseconds
AHEAD = 240  # seconds of work, also on a fast machine
MANY = 60  # of them take seconds, which no client is held up for


@pytest.fixture
def session(daemon, transport):
    address = daemon.address(transport)
    with holdfast.connect(address, run_ahead=math.inf) as made:
        yield made
    holdfast.set_default_session(None)


def mine(session):
    sessions = _stats.parse(session._stats())["sessions"]
    return next(s for s in sessions if s["id"] == session.id)


def products(x, count=MANY):
    return [x @ x for _ in range(count)]


def here():
    """The number of the caller's line."""
    return inspect.currentframe().f_back.f_lineno


def test_what_waits_is_dropped(session):
    x = holdfast.ones(SIZE, SIZE, requires_grad=True)
    session.synchronize()
    ran = mine(session)["ops"]
    results, submitted_at = products(x), inspect.getsourcelines(products)[1] + 1
    dropped, line = holdfast.cancel(), here()
    assert dropped > MANY // 2
    # The one that ran was stopped: it counts as begun, and as dropped.
    assert mine(session)["ops"] - ran - (MANY - dropped) in (0, 1)
    with pytest.raises(CancelledError) as caught:
        results[-1].sum().item()
    text, error = str(caught.value), caught.value
    assert f"[matmul] cancelled at {__file__}:{line} " in text
    assert (error.filename, error.lineno) == (__file__, submitted_at)
    assert error.op == "matmul" and isinstance(error, RuntimeError)
    session.synchronize()  # has nothing to tell of it
    assert results[0].shape == (SIZE, SIZE)


def test_what_is_submitted_afterwards_runs(session):
    x = holdfast.ones(SIZE, SIZE)
    session.synchronize()
    products(x)
    assert session.cancel() > 0
    assert (x + 1)[0, 0].item() == 2
    assert session.cancel() == 0  # there is nothing left
    model = holdfast.nn.Linear(2, 1)
    optimizer = holdfast.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().clone()
    model(holdfast.ones(3, 2)).sum().backward()
    optimizer.step()
    assert not holdfast.equal(model.weight.detach(), before)


def test_what_is_written_in_place_stays_whole(session):
    x = holdfast.ones(SIZE, SIZE)
    first, second = holdfast.zeros(1000), holdfast.zeros(1000)
    session.synchronize()
    for _ in range(MANY):
        y = x @ x
        first.add_(1)
        second.add_(1)
        first.mul_(y[0, 0] / SIZE)  # depends on what is dropped
    session.cancel()
    first, second = first.numpy(), second.numpy()
    assert (first == first[0]).all() and (second == second[0]).all()
    assert first[0] < MANY and first[0] - second[0] in (0, 1)


def test_a_step_of_an_optimizer_is_whole(session):
    x = holdfast.ones(SIZE, SIZE)
    weights = [holdfast.ones(1000, requires_grad=True) for _ in range(8)]
    for weight in weights:
        weight.grad = holdfast.ones(1000)
    optimizer = holdfast.optim.SGD(weights, lr=1.0, momentum=0.5)
    optimizer.step()  # makes its averages
    session.synchronize()
    for _ in range(MANY):
        weights[0].grad.mul_((x @ x)[0, 0] / SIZE)
        optimizer.step()
    session.cancel()
    values = [weight.detach().numpy().copy() for weight in weights]
    assert all((value == values[0][0]).all() for value in values)
    optimizer.step()
    assert (weights[0].detach().numpy() < values[0]).all()


def test_a_backward_under_way_ends(session):
    x = holdfast.ones(SIZE, SIZE, requires_grad=True)
    w = holdfast.eye(SIZE)
    y = x
    for _ in range(MANY // 4):
        y = y @ w
    loss = y.sum()
    loss.item()  # the forward pass is done
    loss.backward()
    begun = session._op_sequence
    wait_until(lambda: mine(session)["op_sequence"] >= begun, "the backward")
    assert session.cancel() == 1
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad[0, 0].item() == 2


def test_a_backward_that_waits_is_dropped(session):
    x = holdfast.ones(SIZE, SIZE, requires_grad=True)
    weight = holdfast.ones(2, requires_grad=True)
    (weight * 3).sum().backward()
    session.synchronize()
    products(x.detach())
    (weight * 5).sum().backward()  # would be added
    x.sum().backward()
    session.cancel()
    assert weight.grad.tolist() == [3, 3]
    assert x.grad is None


def test_user_code_in_a_backward_that_is_cancelled(session):
    class Doubled(holdfast.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            products(holdfast.ones(SIZE, SIZE))
            session.cancel()
            return gradient * 2

    x = holdfast.ones(2, requires_grad=True)
    with pytest.raises(CancelledError, match=r"\[backward\] cancelled at "):
        Doubled.apply(x).sum().backward()
    assert x.grad is None
    assert (x + 1).tolist() == [2, 2]


def test_what_was_kept_before_stays(session):
    x = holdfast.ones(SIZE, SIZE)
    session.keep("x", holdfast.zeros(1))
    session.synchronize()
    results = products(x)
    session.keep("x", results[-1])  # of a result that there will not be
    assert session.cancel() > 0
    assert (x * 2)[0, 0].item() == 2


def test_a_session_without_work_has_nothing_to_cancel(session):
    x = holdfast.ones(3) + 1
    session.synchronize()
    assert session.cancel() == 0
    assert x.tolist() == [2, 2, 2]


def test_other_sessions_go_on(session):
    with holdfast.connect(session.address, default=False) as other:
        x = holdfast.ones(SIZE, SIZE)
        holdfast.set_default_session(other)
        theirs = products(holdfast.ones(SIZE, SIZE), 5)
        holdfast.set_default_session(session)
        products(x)
        assert session.cancel() > 0
        assert [y[0, 0].item() for y in theirs] == [SIZE] * 5


def test_another_thread_may_cancel_what_one_waits_for(session):
    results = products(holdfast.ones(SIZE, SIZE))
    failures = []

    def wait():
        try:
            results[-1].sum().item()
        except CancelledError as error:
            failures.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    session.cancel()
    waiter.join()
    assert len(failures) == 1


def test_a_cut_loses_no_cancellation(daemon):
    proxy = Proxy(daemon.listen)
    try:
        with holdfast.connect(proxy.address, run_ahead=math.inf) as session:
            x = holdfast.ones(SIZE, SIZE)
            session.synchronize()
            results = products(x)
            proxy.cut()
            dropped = session.cancel()
            after = x + 1  # while what came before may travel again
            proxy.cut()
            assert dropped > 0 and after[0, 0].item() == 2
            with pytest.raises(CancelledError):
                results[-1].sum().item()
    finally:
        holdfast.set_default_session(None)
        proxy.close()


class CtrlC:
    """Presses it once within the block, after a moment."""

    def __enter__(self):
        self.timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
        self.timer.start()

    def __exit__(self, *_):
        self.timer.cancel()


def test_a_second_ctrl_c_cancels(session):
    results = products(holdfast.ones(SIZE, SIZE), 2 * MANY)
    with pytest.raises(KeyboardInterrupt), CtrlC():
        results[-1].sum().item()
    with pytest.raises(KeyboardInterrupt), CtrlC():
        results[-1].sum().item()
    with pytest.raises(CancelledError, match="cancelled at the second Ctrl-C"):
        results[-1].sum().item()
    assert (holdfast.ones(1) + 1).item() == 2


@pytest.mark.parametrize("transport", ["shm"], indirect=True)
def test_one_ctrl_c_cancels_nothing(session):
    results = products(holdfast.ones(SIZE, SIZE))
    with pytest.raises(KeyboardInterrupt), CtrlC():
        results[-1].sum().item()
    assert results[-1][0, 0].item() == SIZE
    # What was submitted before it is done: this is a first one again.
    results = products(holdfast.ones(SIZE, SIZE))
    with pytest.raises(KeyboardInterrupt), CtrlC():
        results[-1].sum().item()
    assert results[-1][0, 0].item() == SIZE


# ---- how far a program may be ahead


def most_ahead(address, run_ahead):
    """How many products wait, at most, after each of AHEAD."""
    with holdfast.connect(address, run_ahead=run_ahead, default=False) as session:
        holdfast.set_default_session(session)
        x = holdfast.ones(SIZE, SIZE)
        session.synchronize()
        most = 0
        for _ in range(AHEAD):
            x @ x
            most = max(most, session._op_sequence - mine(session)["op_sequence"])
        session.cancel()
        holdfast.set_default_session(None)
    return most


def test_a_program_is_not_far_ahead(daemon, transport):
    address = daemon.address(transport)
    # What it would be is known, so that the test can fail.
    assert most_ahead(address, math.inf) > AHEAD // 2
    assert most_ahead(address, 0.1) < AHEAD // 3


def test_the_bound_is_on_by_default_and_by_environment(daemon, monkeypatch):
    address = f"unix:{daemon.socket}"
    monkeypatch.setenv("HOLDFAST_RUN_AHEAD_SECONDS", "0.1")
    assert most_ahead(address, None) < AHEAD // 3
    monkeypatch.setenv("HOLDFAST_RUN_AHEAD_SECONDS", "soon")
    with pytest.raises(RuntimeError, match="HOLDFAST_RUN_AHEAD_SECONDS=soon"):
        holdfast.connect(address)
    monkeypatch.delenv("HOLDFAST_RUN_AHEAD_SECONDS")
    for wrong in (0, -1, math.nan):
        with pytest.raises(RuntimeError, match="must be a number above 0"):
            holdfast.connect(address, run_ahead=wrong)


def test_ctrl_c_ends_the_wait_for_room(daemon, transport):
    address = daemon.address(transport)
    with holdfast.connect(address, run_ahead=0.05):
        x = holdfast.ones(SIZE, SIZE)
        with pytest.raises(KeyboardInterrupt), CtrlC():
            while True:
                x @ x
        assert (x + 1)[0, 0].item() == 2
    holdfast.set_default_session(None)


def test_user_code_and_threads_within_a_small_bound(daemon, transport):
    address = daemon.address(transport)

    class Products(holdfast.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x @ x

        @staticmethod
        def backward(ctx, gradient):
            for _ in range(20):
                gradient = gradient @ gradient.new_ones(64, 64) / 64
            return gradient

    def train():
        x = holdfast.ones(64, 64, requires_grad=True)
        for _ in range(5):
            Products.apply(x).sum().backward()
        sums.append(x.grad.sum().item())

    sums = []
    with holdfast.connect(address, run_ahead=1e-5):
        threads = [threading.Thread(target=train) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    holdfast.set_default_session(None)
    assert sums == [5 * 64 * 64] * 3
