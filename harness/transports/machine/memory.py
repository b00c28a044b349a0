"""Memory: a frame's bytes copied from one place to another."""

from contextlib import contextmanager

from harness.registry import transport


@contextmanager
def connect():
    """Yield None: memory needs no connection."""
    yield None


@transport("memory", "bytes", frame="bytes", requires=["polars"], origin="limit")
def copy_bytes(connection, data):
    """Copy the frame's bytes once in memory, into new pages: the minimum for any transport."""
    return bytearray(data)
