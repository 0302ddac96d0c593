# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that can cut, stall and refuse connections."""

import socket
import threading
import time


class Proxy:
    """Forwards 127.0.0.1:port to `target`; cut() resets what is open.

    With cut_every, each connection is reset after that many bytes from the
    client, wherever in a message that falls. Replies take `reply_delay` seconds.
    While `silent` is set, new connections are taken and never answered. The next
    `breaking` ones are reset at their first byte. From `stall_after` bytes on that
    came from one side, nothing more is taken from it until that is None again.
    """

    def __init__(self, target, cut_every=None):
        self.target = target.rsplit(":", 1)
        self.cut_every = cut_every
        self.cuts = 0
        self.bytes = 0
        self.reply_delay = 0
        self.silent = False
        self.breaking = 0
        self.stall_after = None
        self.stalled = threading.Event()  # somebody waits for that
        self._unanswered = []
        self._open = set()
        self._forgotten = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.silent:
                self._unanswered.append(client)
                continue
            if self.breaking > 0:
                self.breaking -= 1
                client.recv(1)
                self._open.add((client,))
                self._reset((client,))
                continue
            try:
                server = socket.create_connection((self.target[0], self.target[1]))
            except OSError:
                client.close()
                continue
            pair = (client, server)
            for s in pair:
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open.add(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(
                    target=self._pump, args=(source, sink, pair), daemon=True
                ).start()

    def _pump(self, source, sink, pair):
        sent = taken = 0
        while True:
            try:
                data = source.recv(65536)
                if not data:
                    break
                if pair in self._forgotten:
                    continue
                taken += len(data)
                while self.stall_after is not None and taken >= self.stall_after:
                    self.stalled.set()
                    time.sleep(0.01)
                if source is pair[0]:
                    self.bytes += len(data)
                    sent += len(data)
                    if self.cut_every and sent >= self.cut_every:
                        # Part of it still gets through.
                        sink.sendall(data[: len(data) // 2])
                        self.cuts += 1
                        break
                elif self.reply_delay:
                    time.sleep(self.reply_delay)
                sink.sendall(data)
            except OSError:
                break
        self._reset(pair)

    def _reset(self, pair):
        with self._lock:
            if pair not in self._open:
                return
            self._open.discard(pair)
        for s in pair:
            try:
                # SO_LINGER 0: a reset, not a polite end.
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def cut(self):
        """Resets every open connection."""
        with self._lock:
            pairs = list(self._open)
        self.cuts += len(pairs)
        for pair in pairs:
            self._reset(pair)

    def forget(self):
        """What is open stays open, and nothing comes through any more: as where an
        address translator has lost its table."""
        with self._lock:
            self._forgotten |= self._open

    def close(self):
        # close() alone would leave the port open while accept() waits on it.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for client in self._unanswered:
            client.close()
