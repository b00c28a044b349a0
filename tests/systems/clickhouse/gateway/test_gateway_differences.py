"""The gateway's differences from a ClickHouse server: each test shows the one that its docstring tells.

``lab docs`` writes these docstrings into the gateway's own, in this order.
"""

import json
import socket
import struct
import time

import lz4.frame
import pytest
from clickhouse_cityhash.cityhash import CityHash128
from clickhouse_driver.errors import ServerException

from harness.systems.clickhouse.gateway.sql import parse_query
from harness.systems.clickhouse.gateway.wire import string
from tests.systems.clickhouse.gateway.client_packets import BLOCK_INFO, NO_MORE_DATA, hello, query_packet
from tests.waiting import until


@pytest.mark.parametrize("wait", [0, 1])
def test_an_insert_is_never_asynchronous(gateway, table, wait):
    """INSERT is always synchronous. ``async_insert`` and ``wait_for_async_insert`` are passed to the engine without
    effect. With either value, an INSERT with data answers when its rows are in the table, and nothing is batched.
    """
    settings = {"async_insert": 1, "wait_for_async_insert": wait, "async_insert_busy_timeout_max_ms": 60_000}
    gateway.query(f"INSERT INTO {table} (number_1) VALUES (1)", **settings)
    assert gateway.query(f"SELECT count() FROM {table}") == b"1\n"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("CREATE USER x", "514"),
        ("CREATE ROW POLICY p ON t USING 1 TO ALL", "514"),
        ("ALTER USER default HOST LOCAL", "495"),
        ("GRANT SELECT ON *.* TO default", "495"),
    ],
)
def test_a_statement_that_changes_users_and_rights_is_refused(gateway, statement, code):
    """All users are the engine's one user. The gateway checks names and passwords, but there are no rights, and no
    other users, roles, policies or quotas. CREATE of these fails with code 514
    (ACCESS_STORAGE_FOR_INSERTION_NOT_FOUND), ALTER, DROP, GRANT and REVOKE with code 495 (ACCESS_STORAGE_READONLY).
    """
    assert gateway.ask(body=statement.encode()).code == code
    assert gateway.query("SELECT currentUser()") == b"default\n"


def test_a_file_of_the_process_can_be_read(gateway, tmp_path):
    """A query may read with ``file()`` every file that the process may read."""
    (tmp_path / "some.csv").write_text("5\n")
    assert gateway.query(f"SELECT * FROM file('{tmp_path}/some.csv', 'CSV', 'a Int32')") == b"5\n"


def test_a_query_has_an_id_of_the_engine_in_the_system_tables(gateway):
    """The engine gives queries its own ids. The answer has the client's ``query_id``, the system tables do not. A
    streamed query's text ends with a comment in ``system.processes``, which identifies it to stop it.
    """
    answer = gateway.ask("SELECT query_id FROM system.processes WHERE query LIKE '%such an id%'", query_id="mine")
    assert answer.headers["X-ClickHouse-Query-Id"] == "mine"
    assert answer.body.count(b"\n") == 1
    assert b"mine" not in answer.body


def test_a_client_that_ends_its_sending_side_ends_its_query(gateway):
    """If a client closes its sending side, the gateway stops its running SELECT, even one that has sent nothing yet.
    A server runs that SELECT to its end.
    """
    body = b"SELECT sleepEachRow(1) FROM numbers(60) SETTINGS max_block_size = 1"
    head = f"POST /?user={gateway.user}&password={gateway.password} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
    assert b"QUERY_WAS_CANCELLED" in gateway.said(gateway.http_port, head.encode() + body)


def test_statements_other_than_select_do_not_stream():
    """Results stream in bounded memory, a few of the engine's blocks (65,409 rows each). Results of statements other
    than SELECT (SHOW, DESCRIBE, EXPLAIN) are held in memory.
    """
    statements = (b"SELECT 1", b"SHOW TABLES", b"DESCRIBE t", b"EXPLAIN SELECT 1")
    assert [parse_query(statement).streams for statement in statements] == [True, False, False, False]


def test_an_early_error_has_its_status_although_rows_came_before_it(gateway):
    """A result's first bytes wait until it has 1 MiB or ends, at most 0.2 s. Errors before then have their own
    status; a server may have sent 200 already.
    """
    answer = gateway.ask("SELECT throwIf(number = 2) FROM numbers(5) SETTINGS max_block_size = 1 FORMAT JSON")
    assert (answer.status, answer.code) == (500, "395")


@pytest.mark.parametrize("parameters", [{}, {"http_write_exception_in_output_format": 1}])
def test_only_a_parameter_of_the_url_puts_an_error_into_a_document(gateway, parameters):
    """``http_write_exception_in_output_format`` works as a parameter of the URL, and for line formats only after the
    first row.
    """
    query = "SELECT throwIf(number = 2) FROM numbers(5) SETTINGS http_write_exception_in_output_format = 1 FORMAT "
    assert b'"exception"' not in gateway.ask(query + "JSONEachRow", **parameters).body
    assert (b'"exception"' in gateway.ask(query + "JSON", **parameters).body) == bool(parameters)


def test_a_failing_result_loses_the_blocks_that_wait_to_be_sent(gateway):
    """If a query fails, the engine drops up to two blocks that it has not sent, so the error comes sooner. Over HTTP, a
    server sends them first.
    """
    body = b"SELECT repeat('x', 100), throwIf(number = 150000) FROM numbers(200000)"  # in the third block
    head = f"POST /?user={gateway.user}&password={gateway.password} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    read = "SELECT max(read_rows) FROM system.processes WHERE query LIKE '%= 150000%' AND query NOT LIKE '%processes%'"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)  # the first block does not fit
        connection.connect(("127.0.0.1", gateway.http_port))
        connection.sendall(head.encode() + body)
        connection.recv(1, socket.MSG_PEEK)
        until(lambda: int(gateway.query(read)) in (0, 3 * 65_409))
        time.sleep(1)
        answer = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    assert b"FUNCTION_THROW_IF_VALUE_IS_NON_ZERO" in answer
    assert answer.count(b"x\t0\n") < 2 * 65_409


def test_a_query_that_needs_a_scalar_of_its_client_fails(gateway):
    """Scalars that remote() of another engine sends are ignored, so a query that needs one fails."""
    scalar = b"\x07" + string("mine") + BLOCK_INFO + b"\x01\x01" + string("c") + string("UInt8") + b"\x05"
    with gateway.raw(gateway.native_port) as connection:
        connection.sendall(hello())
        assert connection.recv(1 << 16)[:1] == b"\x00"
        connection.sendall(query_packet("SELECT __getScalar('mine')") + scalar + NO_MORE_DATA)
        assert connection.recv(1 << 16)[:5] == b"\x02" + struct.pack("<i", 36)


def test_the_server_names_its_revision(client):
    """The native protocol ends at revision 54479. The gateway reads sparse columns and sends none. Of the packets of a
    server, Log and TableColumns are never sent, and ProfileEvents is always empty.
    """
    client.execute("SELECT 1")
    assert client.connection.server_info.revision == 54479


def test_the_rows_before_a_limit_are_not_counted(client):
    """ProfileInfo has no count of the rows before LIMIT or before aggregation."""
    client.execute("SELECT number FROM numbers(10) LIMIT 5")
    assert client.last_query.profile_info.rows_before_limit == 0


def test_totals_come_from_a_second_run(client):
    """A query with totals or extremes runs a second time over the native protocol, because only text formats have
    them.
    """
    *rows, totals = client.execute("SELECT sum(rand64() % 1000000007) FROM numbers(9) GROUP BY number WITH TOTALS")
    assert len(rows) == 9
    assert sum(number for (number,) in rows) != totals[0]


def test_a_native_block_of_an_unknown_layout_is_refused_and_the_connection_closed(gateway):
    """A native block cannot be inserted if it has a type without a layout known here (AggregateFunction, flattened
    Dynamic).
    """
    gateway.query("CREATE TABLE IF NOT EXISTS dynamic (d Dynamic) ENGINE = MergeTree ORDER BY tuple()")
    block = b"\x02" + string("") + BLOCK_INFO + b"\x01\x01" + string("d") + string("Dynamic") + bytes(50)
    sent = hello() + query_packet("INSERT INTO dynamic VALUES") + NO_MORE_DATA + block
    assert b"FORMAT ..." in gateway.said(gateway.native_port, sent, ends=False)
    assert gateway.query("SELECT count() FROM dynamic") == b"0\n"
    gateway.query("DROP TABLE dynamic")


def test_an_external_table_with_inline_data_is_refused(client, table):
    """External tables are refused (code 48) with inline data of a native query's own text."""
    tables = [{"name": "ext", "structure": [("x", "Int32")], "data": [{"x": 1}]}]
    with pytest.raises(ServerException, match=r"^Code: 48\."):
        client.execute(f"INSERT INTO {table} (number_1) FORMAT CSV 1", external_tables=tables)
    assert client.execute(f"SELECT count() FROM {table}") == [(0,)]


@pytest.mark.parametrize("encoding", ["br", "xz", "bz2", "snappy"])
def test_an_encoding_that_is_not_here_is_refused(gateway, encoding):
    """Encodings of HTTP bodies are zstd, lz4, gzip and deflate. There is no br, xz, bz2 or snappy."""
    assert gateway.ask(body=b"SELECT 1", headers={"Content-Encoding": encoding}).code == "48"
    assert gateway.ask("SELECT 1", headers={"Accept-Encoding": encoding}).headers["Content-Encoding"] is None


def test_a_truncated_body_is_refused(gateway):
    """A truncated zstd or lz4 body is refused; a server uses what it could decompress."""
    whole = lz4.frame.compress(b"SELECT 1" + b" " * 1000)
    assert gateway.ask(body=whole[:-1], headers={"Content-Encoding": "lz4"}).code == "618"


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/play", 404), ("OPTIONS", "/", 501)])
def test_there_are_no_pages_and_no_options(gateway, method, path, status):
    """There is no TLS, no HTTP/2, no page (``/play``, ``/dashboard``) and no OPTIONS."""
    assert gateway.ask(method=method, path=path).status == status


def test_a_frame_of_another_codec_is_refused(gateway):
    """Compressed frames are read in NONE, LZ4 and ZSTD. Other codecs are unknown (432); a server tries to decompress
    them.
    """
    frame = struct.pack("<BII", 0x93, 17, 8) + b"SELECT 1"  # T64
    checksum = CityHash128(frame)
    body = struct.pack("<QQ", checksum >> 64, checksum & (1 << 64) - 1) + frame
    assert gateway.ask(body=body, decompress=1).code == "432"


def test_a_summary_has_no_memory(gateway):
    """``X-ClickHouse-Summary`` has no ``memory_usage``, and ``X-ClickHouse-Progress`` comes once, with the head."""
    answer = gateway.ask("SELECT 1", send_progress_in_http_headers=1)
    assert "memory_usage" not in json.loads(answer.headers["X-ClickHouse-Summary"])
    assert len(answer.headers.get_all("X-ClickHouse-Progress")) == 1


def test_a_session_has_temporary_tables_by_get(gateway, table):
    """In a session with an id, a query's ``readonly`` setting stays until the session ends. Such a session can
    create, fill (with data) and drop temporary tables by GET. Every other change is refused, without looking for its
    table.
    """

    def get(query):
        return gateway.ask(query, method="GET", session_id="temporary tables by get")

    assert get("CREATE TEMPORARY TABLE mine (a Int8)").status == 200
    assert get("INSERT INTO mine VALUES (1)").status == 200
    assert get("SELECT * FROM mine").body == b"1\n"
    assert get("DROP TEMPORARY TABLE mine").status == 200
    assert get("SELECT * FROM mine").code == "60"
    assert get(f"INSERT INTO {table} (number_1) VALUES (1)").code == "164"
    assert gateway.ask("SELECT 1", session_id="read only", readonly=1).status == 200
    assert gateway.ask(f"TRUNCATE TABLE {table}", session_id="read only").code == "164"


def test_a_file_of_the_server_cannot_be_inserted(gateway, table, tmp_path):
    """``INSERT ... FROM INFILE`` is refused (code 78); a server reads a local file."""
    (tmp_path / "some.csv").write_text("5\n")
    answer = gateway.ask(body=f"INSERT INTO {table} (number_1) FROM INFILE '{tmp_path}/some.csv' FORMAT CSV".encode())
    assert answer.code == "78"


@pytest.mark.parametrize("query", ["SELECT * FROM system.query_log", "SHOW CREATE TABLE system.one"])
def test_the_engine_has_no_log_of_queries_and_no_definitions_of_system_tables(gateway, query):
    """The engine keeps no ``system.query_log``, and no definitions of system tables (SHOW CREATE): code 60."""
    assert gateway.ask(query).code == "60"
