# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""holdfast.profiler: what was submitted, what ran, and when."""

import threading
import time

import pytest
from holdfast.profiler import (
    ProfilerAction,
    profile,
    record_function,
    schedule,
)

NONE, WARMUP, RECORD, SAVE = ProfilerAction


def ops(events):
    return [e for e in events if not e.is_user_annotation]


def named(events, name):
    return [e for e in events if e.name == name]


def one(events, name):
    (event,) = named(events, name)
    return event


# ---- what is recorded


def test_names_counts_and_order(torch):
    x = torch.ones(64, 64)
    with profile() as prof:
        y = x
        for _ in range(5):
            y = y @ x
        y.mul_(0.0)
        y.exp().sum().item()
    events = ops(prof.events())
    names = [e.name for e in events]
    assert names == ["matmul"] * 5 + ["mul_", "exp", "sum", "read"]
    sequences = [e.sequence_nr for e in events[:-1]]
    assert sequences == list(range(sequences[0], sequences[0] + 8))
    assert [e.id for e in prof.events()] == list(range(len(prof.events())))
    starts = [e.time_range.start for e in events]
    assert starts == sorted(starts)
    for before, after in zip(events, events[1:]):
        assert before.time_range.end <= after.time_range.start
    assert events[0].cpu_memory_usage == 64 * 64 * 4
    assert events[5].cpu_memory_usage == 0  # in place
    assert {e.thread for e in events} == {threading.get_native_id()}


def test_submission_comes_before_execution_on_one_clock(torch, transport):
    x = torch.ones(300, 300)
    # Over gRPC the clocks are compared, to within half a round trip.
    before = time.monotonic_ns()
    with profile() as prof:
        for _ in range(20):
            x = x @ x
        (x * 0).sum().item()
    after = time.monotonic_ns()
    recording = prof._recording
    slack = recording.clock_error_ns / 1e3
    assert (slack == 0) == (transport == "shm")
    assert slack < 1e6
    events = ops(prof.events())
    assert len(events) == 23
    for e in events:
        assert 0 <= e.submit_range.start <= e.submit_range.end
        assert e.time_range.start < e.time_range.end
        if e.name != "read":
            assert e.submit_range.end <= e.time_range.start + slack
            queued = e.time_range.start - e.submit_range.end
            assert abs(e.queue_time - queued) <= slack + 1e-2
        assert recording.begin_ns + 1e3 * (e.time_range.end - slack) <= after
    assert before <= recording.begin_ns <= recording.end_ns <= after
    # The read has its value only when it is done on the daemon.
    read = events[-1]
    assert read.time_range.start - slack <= read.submit_range.end


def test_the_program_runs_ahead(torch):
    x = torch.ones(500, 500)
    for _ in range(10):  # a busy machine may stop the program in the middle
        with profile() as prof:
            for _ in range(10):
                x @ x
        products = named(prof.events(), "matmul")
        last = products[-1]
        if last.submit_range.end < products[0].time_range.end:
            break
    assert last.submit_range.end < products[0].time_range.end, "never ran ahead"
    # All were submitted before the first was done; each waits for those before.
    waits = [e.queue_time for e in products]
    assert waits[1:] == sorted(waits[1:])
    assert last.queue_time > sum(e.cpu_time_total for e in products[1:-1])


def test_shapes(torch):
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    with profile(record_shapes=True) as prof:
        torch.mm(a, b)
        torch.mm(b.t(), b)
        torch.mm(a, b)
    (first, second, _) = [e for e in ops(prof.events()) if len(e.input_shapes) == 2]
    assert first.input_shapes == [[2, 3], [3, 4]]
    assert second.input_shapes == [[4, 3], [3, 4]]
    groups = prof.key_averages(group_by_input_shape=True)
    counts = {str(g.input_shapes): g.count for g in groups}
    assert counts["[[2, 3], [3, 4]]"] == 2
    assert counts["[[4, 3], [3, 4]]"] == 1
    with profile() as prof:
        torch.mm(a, b)
    assert all(e.input_shapes == [] for e in prof.events())


def test_backward_holds_its_ops_and_names_their_forward(torch):
    x = torch.ones(32, 32, requires_grad=True)
    with profile() as prof:
        y = (x @ x).exp()
        y.sum().backward()
        x.grad.sum().item()
    events = ops(prof.events())
    backward = one(events, "backward")
    inside = backward.cpu_children
    assert inside and all(e.is_backward for e in inside)
    for e in inside:
        assert e.cpu_parent is backward
        assert backward.time_range.start <= e.time_range.start
        assert e.time_range.end <= backward.time_range.end
        assert e.submit_range is None
    forward = {e.sequence_nr: e.name for e in events if not e.is_backward}
    products = [e for e in inside if e.name == "matmul"]
    assert len(products) == 2
    assert {forward[e.sequence_nr] for e in products} == {"matmul"}
    assert {forward[e.sequence_nr] for e in inside if e.sequence_nr > 0} <= {
        "matmul",
        "exp",
        "sum",
    }
    total = sum(e.cpu_time_total for e in inside)
    assert backward.cpu_time_total >= total
    assert backward.self_cpu_time_total == pytest.approx(
        backward.cpu_time_total - total
    )


def test_backward_that_calls_user_code(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad.tanh()

    x = torch.ones(3, requires_grad=True)
    with profile() as prof:
        Double.apply(x).sum().backward()
        torch.synchronize()
    assert x.grad.tolist() == pytest.approx([0.7615942] * 3)
    events = prof.events()
    # What the user's code sends is the client's, in the middle of the backward.
    tanh, backward = one(events, "tanh"), one(events, "backward")
    assert tanh.submit_range is not None and not tanh.is_backward
    assert backward.time_range.start < tanh.time_range.start < backward.time_range.end
    stretches = [e for e in prof._recording.executions if e.kind == "backward"]
    assert len(stretches) >= 2


def test_failed_ops(torch):
    x, bad = torch.ones(3), torch.tensor([5])
    with profile() as prof:
        y = x.index_select(0, bad)
        z = y.exp()
        with pytest.raises(IndexError):
            z.sum().item()
    events = ops(prof.events())
    assert all(one(events, n).failed for n in ("index_select", "exp", "sum"))
    assert not one(events, "read").failed


def test_puts_and_threads(torch):
    def work():
        torch.ones(4).exp()

    with profile() as prof:
        torch.tensor([1.0, 2.0])
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    events = ops(prof.events())
    assert one(events, "put").thread == threading.get_native_id()
    assert one(events, "exp").thread not in (0, threading.get_native_id())


def test_profiling_changes_no_result(torch):
    def run():
        torch.manual_seed(3)
        x = torch.randn(50, 50, requires_grad=True)
        (torch.dropout(x @ x, 0.5, True)).tanh().sum().backward()
        return x.grad.numpy().tobytes()

    plain = run()
    with profile(record_shapes=True, profile_memory=True):
        profiled = run()
    assert plain == profiled == run()


# ---- bounds


def test_bound_is_told(torch):
    x = torch.ones(3)
    with profile(max_records=10) as prof:
        for _ in range(50):
            x = x + 1
    assert len(ops(prof.events())) == 10
    assert prof._recording.dropped_executions == 40
    assert prof._recording.dropped_submissions == 40
    assert "40 executions were dropped" in prof.key_averages().table()
    assert x.tolist() == [51.0] * 3


def test_many_records(torch):
    x = torch.ones(3)
    n = 20_000  # several replies
    with profile(record_shapes=True) as prof:
        for _ in range(n):
            x + x
    (add,) = prof.key_averages()
    assert (add.key, add.count) == ("add", n)


# ---- sessions


def test_one_profile_of_a_session_at_a_time(torch):
    with profile() as prof:
        torch.ones(1)
        with pytest.raises(RuntimeError, match="one profile at a time"):
            with profile():
                pass
        torch.zeros(1)
    # The first one is unharmed.
    assert [e.name for e in ops(prof.events())] == ["full", "full"]


def test_two_sessions_at_once(torch, daemon, transport):
    first = torch.current_session()
    with torch.connect(daemon.address(transport), default=False) as second:
        one_profile, other = profile(session=first), profile(session=second)
        with one_profile, other:
            x = torch.ones(100)
            torch.set_default_session(second)
            y = torch.ones(100)
            for _ in range(30):
                x, y = x.exp(), y.tanh()
            x.sum().item(), y.sum().item()
        torch.set_default_session(first)
        counts = [
            {a.key: a.count for a in p.key_averages()} for p in (one_profile, other)
        ]
        assert counts[0] == {"full": 1, "exp": 30, "sum": 1, "read": 1}
        assert counts[1] == {"full": 1, "tanh": 30, "sum": 1, "read": 1}
        # The worker runs one at a time.
        spans = sorted(
            (e.start_ns, e.end_ns)
            for p in (one_profile, other)
            for e in p._recording.executions
        )
        if transport == "shm":
            assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:]))


def test_a_new_client_finds_no_profile(torch, daemon, transport):
    address = daemon.address(transport)
    default = torch.current_session()
    session = torch.connect(address, session="profiled", default=True)
    profile(session=session).start()
    torch.keep("x", torch.ones(3))
    session.close(keep=True)
    with torch.connect(address, session="profiled", attach=True) as session:
        x = torch.kept("x")
        x.exp()
        with profile(session=session) as prof:
            x.tanh()
            torch.synchronize()
        events = ops(prof.events())
        assert [e.name for e in events] == ["tanh", "read"]
        # Its numbers are this client's: the call is found.
        assert events[0].submit_range is not None
    torch.set_default_session(default)


def test_session_that_ended(torch, daemon, transport):
    default = torch.current_session()
    session = torch.connect(daemon.address(transport))
    try:
        with pytest.raises(RuntimeError, match="closed"):
            with profile(session=session):
                session.close()
        with pytest.raises(KeyError):  # the block's own error
            with profile(session=torch.connect(daemon.address(transport))) as prof:
                torch.current_session().close()
                raise KeyError("mine")
        with pytest.raises(AssertionError, match="complete"):
            prof.events()
    finally:
        torch.set_default_session(default)


# ---- ranges


def test_ranges_nest_and_hold_what_they_submit(torch):
    x = torch.ones(200, 200)

    @record_function("decorated")
    def inner(x):
        return x @ x

    with profile() as prof:
        with record_function("outer"):
            y = inner(x).exp()
            with record_function("reading", "an argument"):
                y.sum().item()
        x.tanh()
    events = prof.events()
    outer, decorated = one(events, "outer"), one(events, "decorated")
    reading = one(events, "reading")
    assert decorated.cpu_parent is outer and reading.cpu_parent is outer
    assert outer.cpu_parent is None
    assert one(events, "matmul").cpu_parent is decorated
    assert one(events, "exp").cpu_parent is outer
    assert one(events, "sum").cpu_parent is reading
    assert one(events, "tanh").cpu_parent is None
    for inside in (decorated, reading):
        assert outer.time_range.start <= inside.time_range.start
        assert inside.time_range.end <= outer.time_range.end
    ran = sum(one(events, n).cpu_time_total for n in ("matmul", "exp", "sum", "read"))
    assert outer.cpu_time_total == pytest.approx(ran)
    assert outer.self_cpu_time_total == pytest.approx(0, abs=1e-6)
    assert decorated.cpu_time_total == one(events, "matmul").cpu_time_total


def test_ranges_of_several_threads(torch):
    @record_function("work")
    def work(barrier):
        barrier.wait()
        torch.ones(3).exp()
        barrier.wait()

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=work, args=(barrier,)) for _ in range(2)]
    with profile() as prof:
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    works = named(prof.events(), "work")
    assert len({e.thread for e in works}) == 2
    for e in works:
        assert [c.name for c in e.cpu_children] == ["full", "exp"]


def test_range_without_a_profile_and_with_an_error():
    with pytest.raises(KeyError):
        with record_function("fails"):
            raise KeyError

    @record_function("f")
    def f(n):
        """Documented."""
        return n if n == 0 else f(n - 1)

    assert (f(3), f.__doc__) == (0, "Documented.")


# ---- schedules


def test_schedule_states():
    action = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    cycle = [NONE, WARMUP, RECORD, SAVE]
    assert [action(i) for i in range(12)] == [NONE] + cycle + cycle + [NONE] * 3
    endless = schedule(wait=0, warmup=1, active=1)
    assert [endless(i) for i in range(4)] == [WARMUP, SAVE] * 2
    for wrong in (dict(active=0), dict(wait=-1), dict(repeat=-1), dict(warmup=-1)):
        arguments = dict(dict(wait=0, warmup=1, active=1), **wrong)
        with pytest.raises(ValueError, match="must be at least"):
            schedule(**arguments)
    with pytest.warns(UserWarning, match="warmup"):
        schedule(wait=1, warmup=0, active=1)


def test_scheduled_steps(torch):
    x = torch.ones(8, 8)
    seen = []

    def ready(prof):
        steps = [e.name for e in prof.events() if e.is_user_annotation]
        counts = {a.key: a.count for a in prof.key_averages()}
        seen.append((prof.step_num, steps, counts.get("matmul")))

    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(10):
            x @ x
            prof.step()
    assert seen == [
        (4, ["ProfilerStep#2", "ProfilerStep#3"], 2),
        (8, ["ProfilerStep#6", "ProfilerStep#7"], 2),
    ]
    # After the last cycle the results stay.
    assert len(named(prof.events(), "matmul")) == 2


def test_a_schedule_cut_short_still_reports(torch):
    ready = []
    plan = schedule(wait=0, warmup=1, active=5)
    with profile(schedule=plan, on_trace_ready=ready.append) as prof:
        prof.step()
        torch.ones(3)
    assert ready == [prof]
    assert [e.name for e in ops(prof.events())] == ["full"]


def test_start_and_stop_by_hand(torch):
    ready = []
    prof = profile(on_trace_ready=ready.append)
    prof.start()
    with pytest.raises(RuntimeError, match="twice"):
        prof.start()
    torch.ones(3)
    prof.stop()
    prof.stop()
    assert ready == [prof]
    assert [e.name for e in ops(prof.events())] == ["full"]
    with prof:  # anew
        torch.zeros(3).exp()
    assert ready == [prof, prof]
    assert [e.name for e in ops(prof.events())] == ["full", "exp"]


def test_incorrect_schedule_warns(torch):
    states = [RECORD, NONE, NONE]
    with profile(schedule=lambda step: states[step]) as prof:
        torch.ones(1)
        with pytest.warns(UserWarning, match="RECORD followed by NONE"):
            prof.step()
        torch.zeros(1)
    assert [e.name for e in ops(prof.events())] == ["full"]
