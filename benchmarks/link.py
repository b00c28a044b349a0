"""A TCP link of our own to a server, which the fault campaign cuts or makes slow, and tests break in mid-write."""

import asyncio
import math
import threading
from contextlib import suppress

_CHUNK = 8_192


class Link:
    """Listens on a loopback `port` and carries every connection to `upstream`, a loopback port.

    `cut` ends all connections there are; `slow` delays every 8 kB of every connection by as many seconds. The first
    with more than `most` bytes in one direction is closed on both sides, or `each` is; then the link has `broken`.
    """

    def __init__(self, upstream: int, most: float = math.inf, each: bool = False) -> None:
        self.upstream, self.port, self.delay, self.most, self.each, self.broken = upstream, 0, 0.0, most, each, False
        self._open: set[asyncio.StreamWriter] = set()
        self._loop, self._closing = asyncio.new_event_loop(), asyncio.Event()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def close(self) -> None:
        """End all connections and stop listening."""
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def cut(self) -> None:
        """End all connections at once, without a word."""
        self._loop.call_soon_threadsafe(lambda: [writer.transport.abort() for writer in self._open])

    def slow(self, seconds: float) -> None:
        """Delay all bytes carried from now on; 0 for no longer."""
        self.delay = seconds

    def _run(self, ready: threading.Event) -> None:
        async def listen() -> None:
            server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await self._closing.wait()
            server.close()
            for writer in self._open:
                writer.transport.abort()

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(listen())

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            reader_there, writer_there = await asyncio.open_connection("127.0.0.1", self.upstream)
        except OSError:
            writer.close()
            return
        both = {writer, writer_there}
        self._open |= both
        await asyncio.gather(
            self._one_way(reader, writer_there, writer), self._one_way(reader_there, writer, writer_there)
        )
        self._open -= both

    async def _one_way(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, back: asyncio.StreamWriter
    ) -> None:
        """Carry and count the bytes that are read; `back` writes to their sender."""
        carried = 0
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                carried += len(chunk)
                if carried > self.most and (self.each or not self.broken):
                    self.broken = True
                    back.close()
                    break
                await asyncio.sleep(self.delay)
                writer.write(chunk)
                await writer.drain()
        with suppress(OSError):
            writer.close()
