"""The packets of a client of the native protocol, byte by byte, at an old revision and at the newest."""

from harness.systems.clickhouse.gateway.packets import REVISION
from harness.systems.clickhouse.gateway.wire import chunk_size, string, varint

HELLO = b"\x00" + string("test") + varint(20) + varint(10) + varint(54429) + string("")


def hello(user="tester", password="test-password"):
    return HELLO + string(user) + string(password)


def query_packet(text, compressed=False):
    info = (
        b"\x01"
        + 3 * string("")
        + b"\x01"
        + 3 * string("")
        + varint(20)
        + varint(10)
        + varint(54429)
        + string("")
        + b"\x00"
    )
    return b"\x01" + string("") + info + string("") + b"\x02" + bytes([compressed]) + string(text)


def newest_hello(chunks="notchunked"):
    """Greet at the newest revision; the last three parts follow the server's own greeting."""
    versions = varint(26) + varint(9) + varint(REVISION)
    greeting = b"\x00" + string("test") + versions + string("") + string("tester") + string("test-password")
    return greeting + string("") + 2 * string(chunks) + b"\x00"


def newest_query(text):
    versions = varint(26) + varint(9) + varint(REVISION)
    client = b"\x01" + 3 * string("") + bytes(8) + b"\x01" + 3 * string("") + versions + string("") + bytes(9)
    settings = string("max_threads") + b"\x01" + string("1") + string("")
    parameters = string("p") + b"\x02" + string("'it\\'s'") + string("")
    return b"\x01" + string("id") + client + settings + 2 * string("") + b"\x02\x00" + string(text) + parameters


def in_chunks(*packets):
    """Return packets in chunks, each of two chunks if it has more than one byte."""
    halves = ((packet[: len(packet) // 2], packet[len(packet) // 2 :]) for packet in packets)
    chunks = ([half for half in pair if half] for pair in halves)
    return b"".join(b"".join(chunk_size(len(half)) + half for half in pair) + chunk_size(0) for pair in chunks)


BLOCK_INFO = b"\x01\x00\x02\xff\xff\xff\xff\x00"
NO_MORE_DATA = b"\x02" + string("") + BLOCK_INFO + b"\x00\x00"
SPARSE = b"\x01\x01"  # before the values of a column of the newest revision
