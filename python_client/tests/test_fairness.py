# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A long backward of one session gives way to another session."""

import threading

import holdfast


def test_a_backward_gives_way_between_its_nodes(daemon, transport):
    def connect():
        return holdfast.connect(daemon.address(transport), default=False)

    with connect() as busy, connect() as quick:
        holdfast.set_default_session(quick)
        small = holdfast.ones(2)
        holdfast.set_default_session(busy)
        x = holdfast.full((400, 400), 0.001, requires_grad=True)
        y = x
        for _ in range(300):
            y = y.matmul(x)
        loss = y.sum()
        holdfast.synchronize()
        loss.backward()
        end = x.grad.sum()
        result = []
        reader = threading.Thread(target=lambda: result.append(end.item()))
        reader.start()
        answers = 0
        while reader.is_alive():
            assert (small + answers).tolist() == [answers + 1.0] * 2
            answers += 1
        reader.join()
        assert len(result) == 1
        # One at most if backward ran in one piece.
        assert answers >= 3
