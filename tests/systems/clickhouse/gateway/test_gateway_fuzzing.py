"""Damaged packets and requests end at most their own connection: no thread of the gateway fails on one."""

import contextlib
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.systems.clickhouse.gateway.codecs import METHOD_LZ4, METHOD_ZSTD, compress_frames
from harness.systems.clickhouse.gateway.packets import REVISION
from harness.systems.clickhouse.gateway.wire import string, varint
from tests.fuzzing import examples
from tests.systems.clickhouse.gateway.client_packets import (
    BLOCK_INFO,
    NO_MORE_DATA,
    SPARSE,
    hello,
    in_chunks,
    newest_hello,
    newest_query,
    query_packet,
)
from tests.systems.clickhouse.gateway.conftest import PASSWORD, USER

pytestmark = pytest.mark.long

ROW = "SELECT 5::UInt8 AS a, 'text' AS b, map('k'::LowCardinality(String), [7, NULL]) AS c, '{\"d\": 1}'::JSON AS e"
INSERT = "INSERT INTO fuzzed VALUES"
DATA = b"\x02" + string("")
FORM = b"""--b\r\nContent-Disposition: form-data; name="x"; filename="x"\r\n\r\n1\n\r\n--b--\r\n"""


def request(target, body=b"", *headers):
    credentials = (f"X-ClickHouse-User: {USER}", f"X-ClickHouse-Key: {PASSWORD}")
    length = () if "Transfer-Encoding: chunked" in headers else (f"Content-Length: {len(body)}",)
    return "\r\n".join([f"POST {target} HTTP/1.1", *credentials, *length, *headers, "", ""]).encode() + body


@pytest.fixture(scope="module")
def conversations(gateway):
    """Packets of clients over the native protocol, at an old revision and the newest, and over HTTP."""
    gateway.query(f"CREATE OR REPLACE TABLE fuzzed ENGINE = Null AS {ROW}")
    old, new = (gateway.query(f"{ROW} FORMAT Native", client_protocol_version=one) for one in (54429, REVISION))
    places = SPARSE + varint(2) + varint(1 << 62)
    sparse = BLOCK_INFO + b"\x02\x03" + string("a") + string("UInt8") + places + b"\x05"
    sparse += string("b") + string("String") + places + string("text")
    methods = (METHOD_LZ4, METHOD_ZSTD)
    packets = [[DATA + compress_frames(data, one) for data in (NO_MORE_DATA[2:], old)] for one in methods]
    native = [
        hello() + query_packet("SELECT 1") + NO_MORE_DATA + b"\x04",
        hello() + query_packet(INSERT) + NO_MORE_DATA + DATA + old + NO_MORE_DATA,
        *(hello() + query_packet(INSERT, compressed=True) + end + block + end for end, block in packets),
        newest_hello() + newest_query("SELECT {p:String}, * FROM x") + b"\x02" + string("x") + new + NO_MORE_DATA,
        newest_hello() + newest_query(INSERT) + NO_MORE_DATA + DATA + new + NO_MORE_DATA,
        newest_hello() + newest_query("INSERT INTO fuzzed (a, b) VALUES") + NO_MORE_DATA + DATA + sparse + NO_MORE_DATA,
        newest_hello("chunked") + in_chunks(newest_query("SELECT 1"), NO_MORE_DATA, b"\x04"),
    ]
    insert = "/?query=INSERT+INTO+fuzzed+FORMAT+"
    http = [
        request("/?compress=1&session_id=a", b"SELECT 1") + b"GET /ping HTTP/1.1\r\n\r\n",
        request(insert + "Native", old[len(BLOCK_INFO) :]),
        request(insert + "CSV", b'3\r\n5,t\r\n8\r\n,{},"{}"\r\n0\r\n\r\n', "Transfer-Encoding: chunked"),
        request(insert + "Native&decompress=1", compress_frames(old[len(BLOCK_INFO) :], METHOD_LZ4)),
        request("/?query=SELECT+*+FROM+x&x_types=Int8", FORM, "Content-Type: multipart/form-data; boundary=b"),
    ]
    return {gateway.native_port: native, gateway.http_port: http}


@pytest.mark.parametrize("protocol", ["native_port", "http_port"])
@given(data=st.data())
@examples(180)
def test_a_damaged_conversation_ends_at_most_its_connection(gateway, conversations, protocol, data):
    port = getattr(gateway, protocol)
    sent = bytearray(data.draw(st.sampled_from(conversations[port])))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(sent)))
        sent[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    gateway.said(port, sent)
    assert ".py, line" not in failures(gateway)
    assert gateway.process.poll() is None


def test_an_undamaged_conversation_is_understood(gateway, conversations):
    for port, several in conversations.items():
        for sent in several:
            answer = gateway.said(port, sent)
            assert answer
            assert b"DB::Exception" not in answer or b"QUERY_WAS_CANCELLED" in answer  # it left before the answer


def failures(gateway):
    """Return the gateway's messages about failed threads since the last time."""
    os.set_blocking(gateway.process.stderr.fileno(), False)
    with contextlib.suppress(BlockingIOError):
        return os.read(gateway.process.stderr.fileno(), 1 << 20).decode(errors="replace")
    return ""
