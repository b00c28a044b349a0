"""Each difference from a ClickHouse server that the gateway's documentation lists is shown by a test."""

import importlib
import json
import re
import socket

import lz4.frame
import pytest
from clickhouse_driver.errors import ServerException

from harness.systems.clickhouse import gateway as documented

FOLDER = "tests.systems.clickhouse.gateway"
# How a difference begins, and the test that shows it.
SHOWN_BY = {
    "INSERT is always synchronous": "differences.test_an_insert_is_never_asynchronous",
    "All users are the engine's one user": "differences.test_a_statement_about_users_and_rights_is_refused",
    "A query may read with ``file()``": "differences.test_a_file_of_the_process_can_be_read",
    "The engine gives queries its own ids": "differences.test_a_query_has_an_id_of_the_engine_in_the_system_tables",
    "If a client closes its sending side": "differences.test_a_client_that_ends_its_sending_side_ends_its_query",
    "Results stream in bounded memory": "memory.test_a_slow_reader_of_a_gigabyte_over_http_costs_little_memory",
    "A result's first bytes wait": "differences.test_an_early_error_has_its_status_although_rows_came_before_it",
    "Parquet holds several row groups": "http_bodies.test_parquet_goes_in_and_comes_out",
    "Scalars that remote()": "remote.test_another_engine_writes_and_reads_a_table",
    "The native protocol ends at revision 54464": "differences.test_the_server_names_its_revision",
    "ProfileInfo has no count": "differences.test_the_rows_before_a_limit_are_not_counted",
    "A query with totals or extremes": "native.test_totals_and_extremes_follow_a_result",
    "A native block cannot": "native.test_an_insert_of_a_type_that_cannot_be_walked_over_is_refused_and_closed",
    "External tables are refused (code 48)": "differences.test_an_external_table_with_inline_data_is_refused",
    "Encodings of HTTP bodies": "differences.test_an_encoding_that_is_not_here_is_refused",
    "A truncated zstd or lz4 body": "differences.test_a_truncated_body_is_refused",
    "There is no TLS": "differences.test_there_are_no_pages_and_no_options",
    "Compressed frames are read in": "http_bodies.test_an_unknown_method_for_frames_is_refused",
    "``X-ClickHouse-Summary`` has no": "differences.test_a_summary_has_no_memory",
    "In a session with an id": "like_a_server.test_a_session_has_temporary_tables_by_get",
    "``INSERT ... FROM INFILE``": "differences.test_a_file_of_the_server_cannot_be_inserted",
}


def test_the_list_of_differences_is_the_list_of_these_tests():
    listed = re.findall(r"^- (.*)$", documented.__doc__, re.MULTILINE)
    assert [next(begin for begin in SHOWN_BY if line.startswith(begin)) for line in listed] == list(SHOWN_BY)
    for shown in SHOWN_BY.values():
        module, _, test = shown.partition(".")
        assert callable(getattr(importlib.import_module(f"{FOLDER}.test_gateway_{module}"), test))


@pytest.mark.parametrize("wait", [0, 1])
def test_an_insert_is_never_asynchronous(gateway, table, wait):
    settings = {"async_insert": 1, "wait_for_async_insert": wait, "async_insert_busy_timeout_max_ms": 60_000}
    gateway.query(f"INSERT INTO {table} (number_1) VALUES (1)", **settings)
    assert gateway.query(f"SELECT count() FROM {table}") == b"1\n"


@pytest.mark.parametrize("statement", ["SHOW POLICIES", "SHOW USERS", "SHOW ROLES", "SHOW QUOTAS", "CREATE USER x"])
def test_a_statement_about_users_and_rights_is_refused(gateway, statement):
    answer = gateway.ask(body=statement.encode())
    assert (answer.status, answer.code) == (403, "497")
    assert gateway.query("SELECT currentUser()") == b"default\n"


def test_a_file_of_the_process_can_be_read(gateway, tmp_path):
    (tmp_path / "some.csv").write_text("5\n")
    assert gateway.query(f"SELECT * FROM file('{tmp_path}/some.csv', 'CSV', 'a Int32')") == b"5\n"


def test_a_query_has_an_id_of_the_engine_in_the_system_tables(gateway):
    answer = gateway.ask("SELECT query_id FROM system.processes WHERE query LIKE '%such an id%'", query_id="mine")
    assert answer.headers["X-ClickHouse-Query-Id"] == "mine"
    assert answer.body.count(b"\n") == 1
    assert b"mine" not in answer.body


def test_a_client_that_ends_its_sending_side_ends_its_query(gateway):
    body = b"SELECT sleepEachRow(1) FROM numbers(60) SETTINGS max_block_size = 1"
    head = f"POST /?user={gateway.user}&password={gateway.password} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n"
    with gateway.raw(gateway.http_port) as connection:
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(1 << 16):
            answer += piece
    assert b"QUERY_WAS_CANCELLED" in answer


def test_an_early_error_has_its_status_although_rows_came_before_it(gateway):
    query = "SELECT throwIf(number = 2) FROM numbers(5) SETTINGS max_block_size = 1 FORMAT JSON"
    answer = gateway.ask(query, http_write_exception_in_output_format=1)
    assert (answer.status, answer.code) == (500, "395")


def test_the_server_names_its_revision(gateway):
    client = gateway.native()
    client.execute("SELECT 1")
    assert client.connection.server_info.revision == 54464
    client.disconnect()


def test_the_rows_before_a_limit_are_not_counted(gateway):
    client = gateway.native()
    client.execute("SELECT number FROM numbers(10) LIMIT 5")
    assert client.last_query.profile_info.rows_before_limit == 0
    client.disconnect()


def test_an_external_table_with_inline_data_is_refused(gateway, table):
    client = gateway.native()
    tables = [{"name": "ext", "structure": [("x", "Int32")], "data": [{"x": 1}]}]
    with pytest.raises(ServerException) as raised:
        client.execute(f"INSERT INTO {table} (number_1) FORMAT CSV 1", external_tables=tables)
    assert raised.value.code == 48
    assert client.execute(f"SELECT count() FROM {table}") == [(0,)]
    client.disconnect()


@pytest.mark.parametrize("encoding", ["br", "xz", "bz2", "snappy"])
def test_an_encoding_that_is_not_here_is_refused(gateway, encoding):
    assert gateway.ask(body=b"SELECT 1", headers={"Content-Encoding": encoding}).code == "48"
    assert gateway.ask("SELECT 1", headers={"Accept-Encoding": encoding}).headers["Content-Encoding"] is None


def test_a_truncated_body_is_refused(gateway):
    whole = lz4.frame.compress(b"SELECT 1" + b" " * 1000)
    assert gateway.ask(body=whole[:-1], headers={"Content-Encoding": "lz4"}).code == "618"


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/play", 404), ("OPTIONS", "/", 501)])
def test_there_are_no_pages_and_no_options(gateway, method, path, status):
    assert gateway.ask(method=method, path=path).status == status


def test_a_summary_has_no_memory(gateway):
    answer = gateway.ask("SELECT 1", send_progress_in_http_headers=1)
    assert "memory_usage" not in json.loads(answer.headers["X-ClickHouse-Summary"])
    assert len(answer.headers.get_all("X-ClickHouse-Progress")) == 1


def test_a_file_of_the_server_cannot_be_inserted(gateway, table, tmp_path):
    (tmp_path / "some.csv").write_text("5\n")
    answer = gateway.ask(body=f"INSERT INTO {table} (number_1) FROM INFILE '{tmp_path}/some.csv' FORMAT CSV".encode())
    assert answer.code == "78"
