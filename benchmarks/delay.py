# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A network of some distance: a TCP proxy that hands every byte on a while after
it came, in order and without losing bandwidth."""

import asyncio
import contextlib
import threading


async def _pump(reader, writer, seconds):
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue()

    async def send():
        while True:
            due, data = await queue.get()
            await asyncio.sleep(max(0, due - loop.time()))
            if not data:
                break
            writer.write(data)
            await writer.drain()
        writer.close()

    sender = asyncio.ensure_future(send())
    data = True
    while data:
        try:
            data = await reader.read(1 << 16)
        except OSError:
            data = b""
        queue.put_nowait((loop.time() + seconds, data))
    with contextlib.suppress(OSError):
        await sender


async def _serve(target, seconds, ready):
    host, _, port = target.rpartition(":")

    async def connected(reader, writer):
        there = await asyncio.open_connection(host, int(port))
        await asyncio.gather(
            _pump(reader, there[1], seconds), _pump(there[0], writer, seconds)
        )

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    stop = asyncio.Event()
    ready(server.sockets[0].getsockname()[1], asyncio.get_running_loop(), stop)
    await stop.wait()
    server.close()


@contextlib.contextmanager
def proxy(target, round_trip_s):
    """Yields "host:port", which leads to `target`."""
    known, started = [], threading.Event()

    def ready(*facts):
        known.extend(facts)
        started.set()

    thread = threading.Thread(
        target=lambda: asyncio.run(_serve(target, round_trip_s / 2, ready)),
        daemon=True,
    )
    thread.start()
    started.wait()
    port, loop, stop = known
    try:
        yield f"127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)
