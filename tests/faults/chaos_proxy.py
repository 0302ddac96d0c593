# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that does to connections what networks do, at random.

After a random number of bytes from the client (or from the server, where large
results are on their way) one of these happens:

reset      both sides get a reset; part of what was on its way still arrives
half-open  nothing passes any more and nobody is told, for a while; then a reset
stall      everything waits for a while, then goes on
refused    a reset, and new connections are refused for a while
"""

import collections
import random
import socket
import threading
import time

KINDS = {"reset": 60, "half-open": 10, "stall": 15, "refused": 15}


class ChaosProxy:
    """Forwards 127.0.0.1:port to `target` until `cuts` connections were cut.

    every: bytes from the client between two events, on average. A stall is no cut.
    every_down: bytes from the server between two cuts, on average; None: no such cut.
    """

    def __init__(self, target, seed=0, every=8_000, cuts=None, every_down=None):
        host, port = target.rsplit(":", 1)
        self._target = (host, int(port))
        self._random = random.Random(seed)
        self._every = every
        self._every_down = every_down
        self._left = cuts
        self.events = collections.Counter()
        self._lock = threading.Lock()
        self._refuse_until = 0.0
        self._pairs = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def cuts(self):
        return sum(n for kind, n in self.events.items() if kind != "stall")

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for pair in list(self._pairs):
            pair.reset()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
                if time.monotonic() < self._refuse_until:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
            except OSError:
                if self._listener.fileno() < 0:
                    return
                continue
            pair = _Pair(client, server)
            with self._lock:
                self._pairs.add(pair)
            threading.Thread(target=self._upstream, args=(pair,), daemon=True).start()
            threading.Thread(target=self._downstream, args=(pair,), daemon=True).start()

    def _draw(self):
        """The next event: after how many bytes, what, for how many seconds."""
        with self._lock:
            kinds = self._random.choices(list(KINDS), KINDS.values())
            return (
                self._random.expovariate(1 / self._every),
                kinds[0],
                self._random.uniform(0.02, 0.3),
            )

    def _upstream(self, pair):
        after, kind, seconds = self._draw()
        while data := pair.receive(pair.client):
            after -= len(data)
            if after > 0 or not self._claim(kind):
                pair.send(pair.server, data)
                continue
            if kind == "stall":
                pair.hold(seconds)
                pair.send(pair.server, data)
                after, kind, seconds = self._draw()
                continue
            # Part of it still gets through.
            pair.send(pair.server, data[: len(data) // 2])
            if kind == "half-open":
                pair.dark = True
                time.sleep(seconds)
            elif kind == "refused":
                self._refuse_until = time.monotonic() + seconds
            break
        self._drop(pair)

    def _downstream(self, pair):
        after = float("inf")
        if self._every_down is not None:
            with self._lock:
                after = self._random.expovariate(1 / self._every_down)
        while data := pair.receive(pair.server):
            pair.wait()
            after -= len(data)
            if after <= 0 and self._claim("reset"):
                # Gone, though the server's system has taken it.
                break
            if not pair.dark:
                pair.send(pair.client, data)
        if not pair.dark:
            self._drop(pair)

    def _claim(self, kind):
        """Notes the event; False when enough has been cut."""
        with self._lock:
            if self._left is not None and self.cuts >= self._left:
                return False
            self.events[kind] += 1
            return True

    def _drop(self, pair):
        pair.reset()
        with self._lock:
            self._pairs.discard(pair)


class _Pair:
    """A client's connection and the one to the server."""

    def __init__(self, client, server):
        self.client = client
        self.server = server
        self.dark = False
        self._until = 0.0
        for s in (client, server):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def receive(self, source):
        try:
            return source.recv(65536)
        except OSError:
            return b""

    def send(self, sink, data):
        try:
            sink.sendall(data)
        except OSError:
            pass  # the other direction notices

    def hold(self, seconds):
        self._until = time.monotonic() + seconds
        time.sleep(seconds)

    def wait(self):
        while (left := self._until - time.monotonic()) > 0:
            time.sleep(left)

    def reset(self):
        for s in (self.client, self.server):
            try:
                # SO_LINGER 0: a reset, not a polite end.
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()
