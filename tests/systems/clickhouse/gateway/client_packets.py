"""The packets of a client of the native protocol, byte by byte."""

from harness.systems.clickhouse.gateway.wire import string, varint

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


BLOCK_INFO = b"\x01\x00\x02\xff\xff\xff\xff\x00"
NO_MORE_DATA = b"\x02" + string("") + BLOCK_INFO + b"\x00\x00"
