"""Clients as they are shipped: settings, parameters, errors, streams, and work side by side."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import clickhouse_connect
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError

TEXT = "quote \" and ' and `"


@pytest.fixture
def connect(gateway):
    client = clickhouse_connect.get_client(
        host="127.0.0.1", port=gateway.http_port, username=gateway.user, password=gateway.password
    )
    with contextlib.closing(client):
        yield client


def test_clickhouse_driver_streams(client):
    total = sum(row[0] for row in client.execute_iter("SELECT number FROM numbers(1000000)"))
    assert total == 499999500000


def test_clickhouse_connect_settings_parameters_and_errors(connect):
    assert connect.command("SELECT {n:UInt8} + 1", parameters={"n": 4}) == 5
    assert connect.query("SELECT %(text)s", parameters={"text": TEXT}).first_item == {"'quote \" and \\' and `'": TEXT}
    assert connect.query("SELECT getSetting('max_block_size') AS s", settings={"max_block_size": 9}).first_item == {
        "s": 9
    }
    with pytest.raises(DatabaseError, match="UNKNOWN_TABLE"):
        connect.query("SELECT * FROM nope")
    with pytest.raises(DatabaseError, match="UNKNOWN_TABLE"):
        connect.insert("nope", [[1]], column_names=["a"])
    assert connect.query("SELECT 1 AS a, 'x' AS b LIMIT 0").column_names == ("a", "b")


def test_clickhouse_connect_sees_an_error_in_mid_stream(connect):
    query = "SELECT number, throwIf(number = 900000, 'too much') FROM numbers(1000000)"
    settings = {"max_threads": 1, "wait_end_of_query": 0}
    with (
        pytest.raises((StreamFailureError, DatabaseError), match="too much"),
        connect.query_row_block_stream(query, settings=settings) as stream,
    ):
        for _ in stream:
            pass


def test_eight_different_clients_work_side_by_side(gateway, table):
    start = threading.Barrier(8)

    def native(number):
        client = gateway.native(compression="lz4" if number % 2 else False)
        start.wait()
        for _ in range(5):
            client.execute(f"INSERT INTO {table} (number_1) VALUES", [(number,)] * 1000)
            assert client.execute("SELECT sum(number) FROM numbers(100000)") == [(4999950000,)]
        client.disconnect()

    def http(number):
        start.wait()
        for _ in range(5):
            body = f"{number}\n".encode() * 1000
            assert gateway.ask(f"INSERT INTO {table} (number_1) FORMAT CSV", body=body).status == 200
            assert gateway.query("SELECT sum(number) AS s FROM numbers(100000) FORMAT CSV") == b"4999950000\n"
            assert b'"rows": 3' in gateway.query("SELECT number FROM numbers(3) FORMAT JSON")

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit((native, http)[number % 2], number) for number in range(8)]:
            done.result()
    assert gateway.query(f"SELECT number_1, count() FROM {table} GROUP BY 1 ORDER BY 1 FORMAT CSV") == b"".join(
        b"%d,5000\n" % number for number in range(8)
    )
