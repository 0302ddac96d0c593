# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Sessions that sleep beside each other are heard when they wake."""

import contextlib
import random
import threading
import time

import holdfast

IDLE_S = 0.03  # until the daemon waits for a session's doorbell


@contextlib.contextmanager
def sessions(address, count):
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(holdfast.connect(address, default=False))
            for _ in range(count)
        ]


def use(session, number):
    holdfast.set_default_session(session)
    return (holdfast.full((4,), number) * 2).sum().item()


def test_idle_sessions_wake_in_any_order(daemon, transport):
    order = random.Random(0)
    with sessions(daemon.address(transport), 30) as opened:
        for _ in range(3):
            time.sleep(IDLE_S)
            for number in order.sample(range(30), 30):
                assert use(opened[number], number) == 8 * number


def test_idle_sessions_wake_beside_a_busy_one(daemon, transport):
    address = daemon.address(transport)
    with sessions(address, 5) as opened, sessions(address, 1) as (busy,):
        over = threading.Event()

        def keep_busy():
            holdfast.set_default_session(busy)
            x = holdfast.full((200, 200), 0.001)
            while not over.is_set():
                for _ in range(50):
                    x = x.matmul(x).add_(0.001)
                x.sum().item()

        thread = threading.Thread(target=keep_busy)
        thread.start()
        for number, session in enumerate(opened * 4):
            time.sleep(IDLE_S)
            assert use(session, number) == 8 * number
        over.set()
        thread.join()


def test_an_idle_session_is_heard_after_it_was_attached_to(daemon, transport):
    address = daemon.address(transport)
    name = f"idle-{transport}"
    first = holdfast.connect(address, session=name, default=False, grace=30)
    assert use(first, 1) == 8
    first.close(keep=True)
    time.sleep(IDLE_S)
    with holdfast.connect(address, session=name, attach=True, default=False) as again:
        for number in range(3):
            time.sleep(IDLE_S)
            assert use(again, number) == 8 * number
