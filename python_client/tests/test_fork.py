# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Forked processes: sessions of their own, tensors of the parent's."""

import os
import time
import traceback

import pytest

import holdfast

pytestmark = pytest.mark.usefixtures("torch")


def in_child(function):
    """What `function` returns in a forked process, as text; a traceback if it
    raises."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = str(function())
        except BaseException:
            text = traceback.format_exc()
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text


def open_sessions():
    from holdfast import _stats

    return len(_stats.parse(holdfast.current_session()._stats())["sessions"])


def test_a_child_has_a_session_of_its_own():
    x = holdfast.arange(6.0).reshape(2, 3)
    rows = x.t()

    def work():
        own = holdfast.ones(3).sum().item()
        return own, (x + 1).tolist(), rows[1].tolist(), (x @ rows).sum().item()

    assert in_child(work) == str((3.0, (x + 1).tolist(), [1.0, 4.0], 83.0))
    assert x.sum().item() == 15


def test_the_parent_goes_on_while_children_work():
    x = holdfast.rand(64, 64)
    expected = str(x.sum().item())
    read, write = os.pipe()
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            try:
                os.write(write, (str(x.sum().item()) + "\n").encode())
            finally:
                os._exit(0)
        children.append(pid)
    y = x
    for _ in range(200):
        y = y * 0.5 + x
    assert y.isfinite().all().item()
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read().split() == [expected] * 4


def test_what_a_child_writes_is_its_own():
    x = holdfast.zeros(3)
    alias = x

    def work():
        x.add_(1)
        alias.add_(1)
        return x.tolist()

    assert in_child(work) == "[2.0, 2.0, 2.0]"
    assert x.tolist() == [0, 0, 0]


def test_ops_that_are_still_queued_count():
    x = holdfast.ones(500, 500)
    for _ in range(20):
        x = (x @ x) * 0.002
    assert in_child(lambda: x.sum().item()) == str(x.sum().item())


def test_leaves_and_parameters():
    weight = holdfast.nn.Parameter(holdfast.ones(3))

    def work():
        (weight * 2).sum().backward()
        return weight.grad.tolist(), type(weight).__name__

    assert in_child(work) == "([2.0, 2.0, 2.0], 'Parameter')"
    assert weight.grad is None


def test_a_graph_stays_with_the_parent():
    a = holdfast.ones(3, requires_grad=True)
    b = a * 2

    def work():
        with pytest.warns(UserWarning, match="stays with the process that recorded"):
            total = b.sum()
        with pytest.raises(RuntimeError, match="does not require grad"):
            total.backward()
        (a * 5 + b.detach()).sum().backward()
        return a.grad.tolist(), b.requires_grad

    assert in_child(work) == "([5.0, 5.0, 5.0], False)"
    b.sum().backward()
    assert a.grad.tolist() == [2, 2, 2]


def test_shapes_and_arrays_need_no_session():
    x = holdfast.arange(4.0)
    array = x.numpy()

    def work():
        return tuple(x.shape), len(x), str(x.dtype), array.tolist(), _current()

    def _current():
        return holdfast._C.current_session()

    assert in_child(work) == "((4,), 4, 'holdfast.float32', [0.0, 1.0, 2.0, 3.0], None)"


def test_the_parents_session_is_refused_by_name():
    session = holdfast.current_session()

    def work():
        with pytest.raises(RuntimeError, match="forked"):
            session.synchronize()
        with pytest.raises(RuntimeError, match="forked"):
            session.keep("x", None)
        return "refused"

    assert in_child(work) == "refused"
    session.synchronize()


def test_a_tensor_that_the_parent_released():
    read, write = os.pipe()
    answer, reply = os.pipe()
    x = holdfast.ones(3)
    pid = os.fork()
    if pid == 0:
        try:
            os.read(read, 1)
            with pytest.raises(RuntimeError, match="which it has released since"):
                x.tolist()
            os.write(reply, b"ok")
        finally:
            os._exit(0)
    del x
    holdfast.synchronize()
    os.write(write, b"!")
    os.waitpid(pid, 0)
    os.set_blocking(answer, False)
    assert os.read(answer, 2) == b"ok"
    for end in (read, write, answer, reply):
        os.close(end)


def test_a_grandchild():
    x = holdfast.ones(2)

    def child():
        y = x + 1
        return in_child(lambda: (x + y).tolist())

    assert in_child(child) == "[3.0, 3.0]"


def test_sessions_of_children_end():
    before = open_sessions()
    assert in_child(lambda: holdfast.ones(1).item()) == "1.0"
    end = time.monotonic() + 60
    while open_sessions() > before and time.monotonic() < end:
        time.sleep(0.05)
    assert open_sessions() <= before


def test_many_forks_in_a_row():
    x = holdfast.arange(10.0)
    for i in range(12):
        y = x * i
        assert in_child(lambda: (x + i).sum().item()) == str(45.0 + 10 * i)
        assert y.sum().item() == 45.0 * i
