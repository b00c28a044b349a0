"""Clients of the native protocol that cancel, leave in the middle, or do not speak it."""

import uuid

import psutil
import pytest

from harness.systems.clickhouse.gateway.wire import string, varint
from tests.systems.clickhouse.gateway.client_packets import BLOCK_INFO, HELLO, NO_MORE_DATA, hello, query_packet
from tests.waiting import until


@pytest.mark.parametrize(
    "query", ["SELECT sum(sipHash64(number)) FROM numbers(1000000000000)", "SELECT number FROM system.numbers"]
)
def test_cancel_stops_a_running_select(gateway, client, query):
    marker = f"cancelled {uuid.uuid4()}"
    client.connection.force_connect()
    client.connection.send_query(f"/* {marker} */ {query}")
    client.connection.send_external_tables(None)
    until(lambda: gateway.running(marker))
    client.connection.send_cancel()
    while (packet := client.connection.receive_packet()).type != 5:  # EndOfStream
        assert packet.type != 2
    assert client.execute("SELECT 1") == [(1,)]
    until(lambda: not gateway.running(marker))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)",
        "SELECT number, toString(number) FROM system.numbers",
        "SELECT number FROM system.numbers FORMAT JSON",
    ],
)
@pytest.mark.parametrize("protocol", ["native", "http"])
def test_a_client_that_leaves_stops_its_select_and_leaks_no_thread(gateway, query, protocol):
    marker = f"left {uuid.uuid4()}"
    text = f"/* {marker} */ {query}"
    port = gateway.native_port if protocol == "native" else gateway.http_port
    with gateway.raw(port) as connection:
        if protocol == "native":
            connection.sendall(hello() + query_packet(text) + NO_MORE_DATA)
        else:
            connection.sendall(f"POST / HTTP/1.1\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
        until(lambda: gateway.running(marker))
    until(lambda: not gateway.running(marker))


@pytest.mark.parametrize("protocol", ["native blocks", "native text", "http"])
def test_a_client_that_leaves_within_an_insert_inserts_nothing(gateway, table, protocol):
    row = f"{uuid.uuid4()},2020-01-01,1,2,k,a,b,c,1,2,3,4,5\n".encode()
    insert = f"INSERT INTO {table} FORMAT CSV\n".encode()
    if protocol == "http":
        port, data = gateway.http_port, b"POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n" + insert + row * 1000
    elif protocol == "native text":
        port, data = gateway.native_port, hello() + query_packet(insert + row * 40_000)[:-100]
    else:
        block = b"\x01\x64" + string("number_1") + string("Int32") + bytes(400)
        packet = b"\x02" + string("") + BLOCK_INFO + block
        text = f"INSERT INTO {table} (number_1) VALUES"
        port, data = gateway.native_port, hello() + query_packet(text) + NO_MORE_DATA + packet * 10 + packet[:50]
    with gateway.raw(port) as connection:
        connection.sendall(data)
    until(lambda: gateway.running(f"INSERT INTO {table}") == 0)
    assert gateway.query(f"SELECT count() FROM {table}") == b"0\n"


def test_many_clients_that_leave_leak_neither_threads_nor_files(gateway):
    process = psutil.Process(gateway.process.pid)
    text = b"SELECT number FROM system.numbers FORMAT JSON"
    baseline = len(process.net_connections("tcp"))
    threads, files = [], []

    def open_files():
        return process.num_fds() - 3 * gateway.threads  # the engine opens three for each of its threads

    for _ in range(3):
        for _ in range(5):
            with gateway.raw(gateway.native_port) as connection:
                connection.sendall(hello() + query_packet("SELECT number FROM system.numbers") + NO_MORE_DATA)
                connection.recv(1)
            with gateway.raw(gateway.http_port) as connection:
                connection.sendall(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))
        until(lambda: gateway.running("system.numbers") == 0)
        until(lambda: len(process.net_connections("tcp")) <= baseline)
        threads.append(gateway.threads)
        files.append(open_files())
    # The engine's own pool of threads may still grow; a thread and a session left behind by each would be ten a round.
    assert threads[2] <= threads[0] + 15
    until(lambda: open_files() <= files[0] + 30)  # the engine itself opens some for a short time


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\xff" * 100,
        b"\x00" + b"\xff" * 20,
        b"\x00" + varint(1 << 40),
        HELLO + string("tester"),
        hello() + b"\x63",
        hello() + b"\x01" + varint(1 << 62),
        hello() + b"\x01" + b"\xff" * 30,
        hello() + query_packet("SELECT 1") + b"\x02" + string("") + b"\x09" * 50,
        hello() + query_packet("SELECT 1") + b"\x02" + string("") + BLOCK_INFO + varint(1 << 60) + varint(1 << 60),
        hello() + query_packet("SELECT 1") + b"\x02\x00" + BLOCK_INFO + b"\x01" + varint(1 << 31) + b"\x01a\x07UInt256",
        hello() + query_packet("SELECT 1", compressed=True) + b"\x02" + string("") + b"\xff" * 200,
    ],
)  # fmt: skip
def test_garbage_is_closed_and_harms_no_other(gateway, data):
    bystander = gateway.native()
    assert bystander.execute("SELECT 1") == [(1,)]
    gateway.said(gateway.native_port, data)
    assert bystander.execute("SELECT 2") == [(2,)]
    bystander.disconnect()
