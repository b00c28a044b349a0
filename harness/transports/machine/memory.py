"""Memory: a frame's bytes copied from one place to another."""

from contextlib import nullcontext

from harness.registry import transport

connect = nullcontext  # memory needs no connection


@transport("memory", "bytes", frame="bytes", requires=["polars"], origin="limit")
def copy_bytes(connection, data):
    """Copy the frame's bytes once in memory, into new pages: the minimum for any transport."""
    return bytearray(data)
