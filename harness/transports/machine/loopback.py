"""Loopback: a frame's bytes over TCP to the other end of a connection on this machine."""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from harness.registry import transport

_PIECE = 1 << 18  # bytes received at a time


@contextmanager
def connect():
    """Yield the two ends of a TCP connection on 127.0.0.1, and a thread that sends."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sender,
        ThreadPoolExecutor(1) as thread,
    ):
        receiver, _ = server.accept()
        with receiver:
            yield sender, receiver, thread


@transport("TCP on loopback", "bytes", frame="bytes", requires=["polars"], origin="limit")
def copy_bytes(connection, data):
    """Send the frame's bytes over a local TCP connection while another thread receives them.

    Sender and receiver are two threads that wait in the kernel without holding the interpreter's lock, like a client
    and its server in two processes. This is the minimum for any transport over one connection, without encoding.
    """
    sender, receiver, thread = connection
    sent = thread.submit(sender.sendall, data)
    received = bytearray(len(data))
    place, end = memoryview(received), 0
    while end < len(data):
        end += receiver.recv_into(place[end : end + _PIECE])
    sent.result()
    return received
