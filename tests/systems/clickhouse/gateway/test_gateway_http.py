"""The HTTP protocol, with the standard library's client and plain sockets: bodies, codecs and counts too."""

import base64
import contextlib
import gzip
import http.client
import io
import itertools
import json
import struct
import threading
import urllib.parse
import uuid
import zlib
from xml.etree import ElementTree

import lz4.frame
import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from harness.systems.clickhouse.gateway import codecs
from harness.systems.clickhouse.gateway.codecs import METHOD_NONE, compress_frames
from harness.systems.clickhouse.gateway.errors import ClickHouseError
from harness.systems.clickhouse.gateway.http import _Text
from harness.systems.clickhouse.gateway.wire import Reader, receiver
from tests.systems.clickhouse.gateway.conftest import PASSWORD, USER
from tests.waiting import until


def test_ping_needs_no_password(gateway):
    answer = gateway.ask(path="/ping", method="GET", user=None)
    assert (answer.status, answer.body) == (200, b"Ok.\n")


def test_the_root_without_a_query_says_ok(gateway):
    assert gateway.ask(method="GET").body == b"Ok.\n"


def test_a_query_comes_in_the_url_in_the_body_or_in_both(gateway):
    assert gateway.ask("SELECT 1", method="GET").body == b"1\n"
    assert gateway.ask(body=b"SELECT 1").body == b"1\n"
    assert gateway.ask("SELECT", body=b"1").body == b"1\n"


def test_the_headers_of_a_servers_answer_are_there(gateway):
    answer = gateway.ask("SELECT 1 FORMAT CSV", query_id="my id")
    assert answer.headers["X-ClickHouse-Query-Id"] == "my id"
    assert answer.headers["X-ClickHouse-Format"] == "CSV"
    assert answer.headers["Content-Type"].startswith("text/csv")
    assert answer.headers["X-ClickHouse-Timezone"]
    assert json.loads(answer.headers["X-ClickHouse-Summary"])["result_bytes"] == "0"
    assert len(answer.headers["X-ClickHouse-Exception-Tag"]) == 16


def test_a_query_id_cannot_add_a_header(gateway):
    answer = gateway.ask("SELECT 1", query_id="x\r\nX-Evil: 1")
    assert "X-Evil" not in answer.headers


def test_a_head_request_has_the_headers_and_no_body(gateway):
    answer = gateway.ask("SELECT 1", method="HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["X-ClickHouse-Format"] == "TabSeparated"


@pytest.mark.parametrize(
    ("given", "format"),
    [
        ({"default_format": "JSONEachRow"}, "JSONEachRow"),
        ({"headers": {"X-ClickHouse-Format": "CSV"}}, "CSV"),
        ({}, "TabSeparated"),
    ],
)
def test_the_default_format_is_chosen_by_parameter_or_header(gateway, given, format):
    assert gateway.ask("SELECT 1", **given).headers["X-ClickHouse-Format"] == format


def test_a_format_that_is_no_name_is_refused(gateway):
    answer = gateway.ask("SELECT 1", default_format="CSV; DROP TABLE x")
    assert (answer.status, answer.code) == (404, "73")


# ---------------------------------------------------------------- users


def test_each_way_to_give_a_password_works(gateway):
    basic = {"Authorization": "Basic dGVzdGVyOnRlc3QtcGFzc3dvcmQ="}
    assert gateway.ask("SELECT 1", user=None, headers=basic).status == 200
    assert gateway.ask("SELECT 1").status == 200
    target = f"/?user={gateway.user}&password={gateway.password}&query=SELECT+1"
    assert gateway.ask(method="GET", path=target, user=None).body == b"1\n"
    assert gateway.ask("SELECT 1", user=None).status == 200  # the default user has no password


@pytest.mark.parametrize(
    ("user", "password"), [("tester", "wrong"), ("nobody", "test-password"), ("tester", ""), ("nobody", "")]
)
def test_a_wrong_user_or_password_is_refused_with_code_516(gateway, user, password):
    answer = gateway.ask("SELECT 1", user=user, password=password)
    assert (answer.status, answer.code) == (403, "516")
    assert b"AUTHENTICATION_FAILED" in answer.body
    assert b"test-password" not in answer.body


def test_credentials_in_two_places_at_once_are_refused(gateway):
    answer = gateway.ask("SELECT 1", headers={"Authorization": "Basic dGVzdGVyOnRlc3QtcGFzc3dvcmQ="})
    assert answer.code == "516"


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("query", "status", "code", "name"),
    [
        ("SELEKT 1", 400, "62", "SYNTAX_ERROR"),
        ("SELECT 1; SELECT 2", 400, "62", "SYNTAX_ERROR"),
        ("SELECT nope", 404, "47", "UNKNOWN_IDENTIFIER"),
        ("SELECT * FROM nope", 404, "60", "UNKNOWN_TABLE"),
        ("SELECT nope(1)", 404, "46", "UNKNOWN_FUNCTION"),
        ("USE nope", 404, "81", "UNKNOWN_DATABASE"),
        ("SELECT 1 FORMAT Nope", 404, "73", "UNKNOWN_FORMAT"),
        ("SELECT throwIf(1)", 500, "395", "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO"),
        ("SELECT throwIf(1) FORMAT JSON", 500, "395", "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO"),
        ("SELECT throwIf(number = 7) FROM numbers(10) FORMAT Parquet", 500, "395", "THROW_IF"),
        ("INSERT INTO nope FORMAT CSV\n1", 404, "60", "UNKNOWN_TABLE"),
        ("SELECT 1 INTO OUTFILE 'x'", 500, "358", "INTO_OUTFILE_NOT_ALLOWED"),
        ("SELECT {x:UInt8}", 500, "456", "UNKNOWN_QUERY_PARAMETER"),
        ("1 + 1", 400, "62", "SYNTAX_ERROR"),
    ],
)
def test_an_error_has_the_status_code_and_text_of_a_server(gateway, query, status, code, name):
    answer = gateway.ask(body=query.encode())
    assert (answer.status, answer.code) == (status, code)
    text = answer.body.decode()
    assert text.startswith(f"Code: {code}. DB::Exception: ")
    assert name in text
    assert text.endswith(f" (version {gateway.version})\n")
    assert text.count("(version") == 1


def test_an_unknown_setting_is_refused_with_code_115(gateway):
    answer = gateway.ask("SELECT 1", no_such_setting="1")
    assert (answer.status, answer.code) == (404, "115")


def test_a_missing_database_is_refused_with_code_81(gateway):
    assert gateway.ask("SELECT 1", database="nope").code == "81"
    assert gateway.ask("SELECT 1", headers={"X-ClickHouse-Database": "nope"}).code == "81"


def stream_with_error(gateway, format, last=900000, **params):
    """Ask for a stream that breaks after several megabytes; return the received data, and whether it ended cleanly."""
    query = f"SELECT number, throwIf(number = {last}, 'too much') FROM numbers(1000000) FORMAT {format}"
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", gateway.http_port, timeout=60)) as connection:
        target = "/?max_threads=1&" + "&".join(f"{name}={value}" for name, value in params.items())
        connection.request("POST", target, body=query)
        response = connection.getresponse()
        try:
            return response, response.read(), True
        except http.client.IncompleteRead as error:
            return response, error.partial, False


@pytest.mark.parametrize("format", ["TabSeparated", "Native", "RowBinary", "JSON", "CSVWithNames"])
def test_an_error_in_mid_stream_is_never_a_clean_end(gateway, format):
    response, body, clean = stream_with_error(gateway, format)
    assert response.status == 200
    assert not clean
    tag = response.headers["X-ClickHouse-Exception-Tag"].encode()
    assert body.endswith(tag + b"\r\n__exception__\r\n")
    _, _, marker = body.rpartition(b"\r\n__exception__\r\n" + tag + b"\r\n")
    assert marker.startswith(b"Code: 395.")


@pytest.mark.parametrize("last", [5, 900000])
@pytest.mark.parametrize(
    ("format", "error_in"),
    [
        ("JSON", lambda body: json.loads(body)["exception"]),
        ("JSONCompactStrings", lambda body: json.loads(body)["exception"]),
        ("XML", lambda body: ElementTree.fromstring(body).findtext("exception")),
        ("JSONEachRow", lambda body: json.loads(body.splitlines()[-1])["exception"]),
        ("JSONCompactEachRow", lambda body: json.loads(body.splitlines()[-1])[0]),
        ("JSONColumns", lambda body: body.decode()),
        ("TabSeparated", lambda body: body.decode()),
    ],
)
def test_an_error_is_written_into_a_document_if_asked(gateway, format, error_in, last):
    in_document = {"http_write_exception_in_output_format": 1}
    response, body, clean = stream_with_error(gateway, format, last=last, **in_document)
    documents = format not in ("TabSeparated", "JSONColumns")
    assert response.status == (200 if last > 5 else 500)
    assert clean == (documents or last == 5)
    if last > 5 or not format.endswith("EachRow"):
        assert "Code: 395. DB::Exception: too much" in error_in(body)
    assert body.count(b"Code: 395.") == 1


def test_what_ends_an_arrow_stream_is_not_sent_when_the_query_failed(gateway):
    _, body, clean = stream_with_error(gateway, "ArrowStream")
    assert not clean
    assert not body.partition(b"\r\n__exception__\r\n")[0].endswith(b"\xff\xff\xff\xff\0\0\0\0")


def test_wait_end_of_query_gives_a_late_error_its_status(gateway):
    response, body, clean = stream_with_error(gateway, "TabSeparated", wait_end_of_query=1)
    assert (response.status, clean) == (500, True)
    assert body.startswith(b"Code: 395.")


def test_wait_end_of_query_gives_a_long_result_whole(gateway):
    body = gateway.query("SELECT number FROM numbers(3000000)", wait_end_of_query=1)
    assert body.count(b"\n") == 3_000_000


# ---------------------------------------------------------------- settings, parameters, sessions


def test_a_setting_of_the_url_reaches_the_engine(gateway):
    assert gateway.ask("SELECT getSetting('max_block_size')", max_block_size="123").body == b"123\n"
    assert gateway.ask("SELECT getSetting('async_insert')", async_insert="0").body == b"false\n"
    assert gateway.ask("SELECT getSetting('async_insert')", async_insert="1").body == b"true\n"


def test_a_setting_of_strings_can_look_like_a_number(gateway):
    query = "SELECT getSetting('insert_deduplication_token')"
    assert gateway.query(query, insert_deduplication_token=5772) == b"5772\n"


def test_a_query_parameter_fills_its_place(gateway):
    assert gateway.ask("SELECT {n:UInt8}, {s:String}", param_n="5", param_s="it's").body == b"5\tit\\'s\n"


def test_a_created_database_can_be_used_at_once(gateway):
    gateway.query("CREATE DATABASE IF NOT EXISTS lab_http")
    gateway.query("CREATE OR REPLACE TABLE inside (a UInt8) ENGINE = MergeTree ORDER BY a", database="lab_http")
    assert gateway.ask("INSERT INTO inside FORMAT CSV", body=b"7\n", database="lab_http").status == 200
    assert gateway.query("SELECT * FROM lab_http.inside") == b"7\n"
    gateway.query("DROP DATABASE lab_http")


def test_a_request_leaves_nothing_to_the_next_of_its_connection(gateway):
    block_size, empty = "SELECT getSetting('max_block_size')", b""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", gateway.http_port, timeout=60)) as connection:

        def ask(query, method="POST", **params):
            connection.request(method, "/?" + urllib.parse.urlencode({"query": query, **params}))
            return connection.getresponse().read()

        default = ask(block_size)
        assert [ask(block_size, max_block_size=size) for size in (5, 5, 6)] == [b"5\n", b"5\n", b"6\n"]
        seen = {f"{block_size} SETTINGS": b"8\n", f"{block_size} FORMAT Values SETTINGS": b"(8)", "SET": empty}
        for change, answer in seen.items():
            assert [ask(f"{change} max_block_size = 8"), ask(block_size)] == [answer, default]
        assert ask("SELECT {n:UInt8}", param_n=9) == b"9\n"
        assert b"UNKNOWN_QUERY_PARAMETER" in ask("SELECT {n:UInt8}")
        assert b"READONLY" in ask("CREATE DATABASE lab_kept", method="GET")
        for change in ("CREATE DATABASE lab_kept", "USE lab_kept", "CREATE TEMPORARY TABLE mine (a Int8)"):
            assert ask(change) == empty
        assert b"UNKNOWN_TABLE" in ask("SELECT * FROM mine")
        current = "SELECT currentDatabase()"
        assert [ask(current), ask(current, database="lab_kept")] == [b"default\n", b"lab_kept\n"]
        gateway.query("DROP DATABASE lab_kept")
        assert b"UNKNOWN_DATABASE" in ask(current, database="lab_kept")
        assert ask(current) == b"default\n"


def test_a_session_keeps_its_temporary_tables_and_settings(gateway):
    session = {"session_id": str(uuid.uuid4())}
    gateway.query("CREATE TEMPORARY TABLE mine (a UInt8)", **session)
    gateway.query("SET max_block_size = 77", **session)
    assert gateway.query("SELECT count(), getSetting('max_block_size') FROM mine", **session) == b"0\t77\n"
    assert gateway.query("SELECT getSetting('max_block_size')", max_block_size=5, **session) == b"5\n"
    assert gateway.query("SELECT getSetting('max_block_size')", **session) == b"77\n"
    assert gateway.ask("SELECT 1 FROM mine").code == "60"


def test_a_session_in_use_is_locked(gateway):
    session = {"session_id": str(uuid.uuid4())}
    marker = session["session_id"]
    slow = f"/* {marker} */ SELECT sleepEachRow(0.1) FROM numbers(600) SETTINGS max_block_size = 1"
    holder = threading.Thread(target=gateway.ask, args=(slow,), kwargs=session)
    holder.start()
    until(lambda: gateway.running(marker))
    answer = gateway.ask("SELECT 1", **session)
    assert (answer.status, answer.code) == (500, "373")
    gateway.query(f"KILL QUERY WHERE query LIKE '%{marker}%' AND query NOT LIKE 'KILL%' ASYNC")
    holder.join()
    until(lambda: gateway.ask("SELECT 1", **session).body == b"1\n")


def test_a_session_ends_after_its_timeout(gateway):
    session = {"session_id": str(uuid.uuid4()), "session_timeout": 0}
    gateway.query("SELECT 1", **session)
    answer = gateway.ask("SELECT 1", session_check=1, **session)
    assert answer.code == "372"


@pytest.mark.parametrize("timeout", ["x", "-1", "3601"])
def test_a_session_timeout_out_of_range_is_refused(gateway, timeout):
    assert gateway.ask("SELECT 1", session_id="s", session_timeout=timeout).code == "374"


def test_a_get_in_a_session_leaves_it_writable(gateway):
    session = {"session_id": str(uuid.uuid4())}
    assert gateway.ask("SELECT 1", method="GET", **session).status == 200
    assert gateway.ask("CREATE TABLE x (a Int8) ENGINE = Memory", method="GET", **session).code == "164"
    assert gateway.ask("CREATE TEMPORARY TABLE x (a Int8)", **session).status == 200


# ---------------------------------------------------------------- bytes that are no HTTP


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 10_000,
        b"GET /?" + b"a" * (2 << 20) + b" HTTP/1.1\r\n\r\n",
        b"DELETE / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_is_closed_and_harms_no_other(gateway, request_bytes):
    gateway.said(gateway.http_port, request_bytes, ends=False)
    assert gateway.query("SELECT 1") == b"1\n"


CHUNKED = b"Transfer-Encoding: chunked\r\n"
AMBIGUOUS = {
    "two lengths": b"Content-Length: 8\r\nContent-Length: 8\r\n\r\nSELECT 1",
    "two other lengths": b"Content-Length: 8\r\nContent-Length: 1\r\n\r\nSELECT 1",
    "a list of lengths": b"Content-Length: 8, 8\r\n\r\nSELECT 1",
    "a signed length": b"Content-Length: +8\r\n\r\nSELECT 1",
    "a length with an underscore": b"Content-Length: 0_8\r\n\r\nSELECT 1",
    "a length of 5000 digits": b"Content-Length: " + b"0" * 5000 + b"8\r\n\r\nSELECT 1",
    "length beside chunked": CHUNKED + b"Content-Length: 8\r\n\r\n8\r\nSELECT 1\r\n0\r\n\r\n",
    "chunked beside length": b"Content-Length: 8\r\n" + CHUNKED + b"\r\n8\r\nSELECT 1\r\n0\r\n\r\n",
    "chunked twice": CHUNKED + CHUNKED + b"\r\n8\r\nSELECT 1\r\n0\r\n\r\n",
    "a name with a space": b"Transfer-Encoding : chunked\r\nContent-Length: 8\r\n\r\nSELECT 1",
    "a negative chunk": CHUNKED + b"\r\n-8\r\nSELECT 1\r\n0\r\n\r\n",
    "a negative chunk behind a whole one": CHUNKED + b"\r\n8\r\nSELECT 1\r\n-1\r\nx\r\n0\r\n\r\n",
    "a signed chunk": CHUNKED + b"\r\n+8\r\nSELECT 1\r\n0\r\n\r\n",
    "a chunk with 0x": CHUNKED + b"\r\n0x8\r\nSELECT 1\r\n0\r\n\r\n",
    "a signed chunk with 0x": CHUNKED + b"\r\n-0x8\r\nSELECT 1\r\n0\r\n\r\n",
    "a chunk with an underscore": CHUNKED + b"\r\n0_8\r\nSELECT 1\r\n0\r\n\r\n",
    "a chunk of 40 digits": CHUNKED + b"\r\n" + b"0" * 39 + b"8\r\nSELECT 1\r\n0\r\n\r\n",
    "a head of 5000 bytes": CHUNKED + b"\r\n8;" + b"a" * 5000 + b"\r\nSELECT 1\r\n0\r\n\r\n",
    "a chunk that is longer than its size": CHUNKED + b"\r\n8\r\nSELECT 1 + 1\r\n0\r\n\r\n",
    "trailers without an end": CHUNKED + b"\r\n8\r\nSELECT 1\r\n0\r\n" + b"a: b\r\n" * 1000 + b"\r\n",
}


@pytest.mark.parametrize("how", AMBIGUOUS)
def test_a_body_whose_end_is_not_plain_is_refused_and_the_connection_ends(gateway, how):
    credentials = f"X-ClickHouse-User: {gateway.user}\r\nX-ClickHouse-Key: {gateway.password}\r\n".encode()
    request = b"POST / HTTP/1.1\r\n" + credentials + AMBIGUOUS[how]
    answer = gateway.said(gateway.http_port, request, ends=False)
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:300]
    assert answer.count(b"HTTP/1.1 ") == 1
    assert gateway.query("SELECT 1") == b"1\n"


@pytest.mark.parametrize("endless", [b" ", b"-- no statement\n"])
def test_a_body_without_a_word_is_not_read_to_its_end_to_find_one(endless):
    """A compressed body of blanks is a thousand times as large."""
    pieces = itertools.repeat(endless * (1 << 16), 1_000)
    assert _Text("", pieces, print).insert_head() is None
    assert len(list(pieces)) > 900


def summary(answer):
    return {name: int(value) for name, value in json.loads(answer.headers["X-ClickHouse-Summary"]).items()}


@pytest.mark.parametrize("format", ["TabSeparated", "Native", "JSON", "Null"])
def test_a_summary_says_what_the_engine_has_read(gateway, format):
    told = summary(gateway.ask(f"SELECT sum(number) FROM numbers(1000) FORMAT {format}"))
    assert (told["read_rows"], told["read_bytes"], told["total_rows_to_read"]) == (1000, 8000, 1000)
    assert told["elapsed_ns"] > 0


def test_a_summary_says_what_an_insert_has_written(gateway, table):
    told = summary(gateway.ask(body=f"INSERT INTO {table} (number_1) VALUES (1), (2)".encode()))
    assert (told["written_rows"], told["result_rows"]) == (2, 2)
    assert told["written_bytes"] > 0
    select = f"INSERT INTO {table} (number_1) SELECT number FROM numbers(5)"
    assert summary(gateway.ask(body=select.encode()))["written_rows"] == 5


def test_progress_is_reported_when_it_is_asked_for(gateway):
    answer = gateway.ask("SELECT sum(number) FROM numbers(1000)", send_progress_in_http_headers=1)
    assert json.loads(answer.headers["X-ClickHouse-Progress"])["read_rows"] == "1000"
    assert gateway.ask("SELECT 1").headers["X-ClickHouse-Progress"] is None


def test_the_time_zone_of_the_session_is_reported(gateway):
    answer = gateway.ask("SELECT timezone()", session_timezone="Asia/Tokyo")
    assert (answer.body, answer.headers["X-ClickHouse-Timezone"]) == (b"Asia/Tokyo\n", "Asia/Tokyo")


@pytest.mark.parametrize(
    ("revision", "found"),
    [
        (0, b"\x01\x01\x01d\x08DateTime\x00\x00\x00\x00"),
        (54336, b"\x01\x00\x02\xff\xff\xff\xff\x00\x01\x01\x01d\x08DateTime\x00\x00\x00\x00"),
        (54337, b"\x01\x00\x02\xff\xff\xff\xff\x00\x01\x01\x01d\x16DateTime('Asia/Tokyo')\x00\x00\x00\x00"),
        (54454, b"\x01\x00\x02\xff\xff\xff\xff\x00\x01\x01\x01d\x16DateTime('Asia/Tokyo')\x00\x00\x00\x00\x00"),
        (99999, b"\x01\x00\x02\xff\xff\xff\xff\x00\x01\x01\x01d\x16DateTime('Asia/Tokyo')\x00\x00\x00\x00\x00"),
    ],
)
def test_the_native_format_is_the_one_of_the_clients_revision(gateway, revision, found):
    query = "SELECT toDateTime(0, {zone:String}) AS d FORMAT Native"
    assert gateway.ask(query, param_zone="Asia/Tokyo", client_protocol_version=revision).body == found


BOUNDARY = "a boundary"


def form(*parts):
    body = b"".join(
        b"--%s\r\nContent-Disposition: form-data; name=%s%s\r\n\r\n%s\r\n"
        % (BOUNDARY.encode(), name, b"; filename=x" if file else b"", content)
        for name, file, content in parts
    )
    headers = {"Content-Type": f'multipart/form-data; boundary="{BOUNDARY}"'}
    return {"body": body + b"--%s--\r\n" % BOUNDARY.encode(), "headers": headers}


def test_files_of_a_form_are_tables_of_its_query(gateway):
    any_bytes = bytes(range(256)).replace(b"\t", b"").replace(b"\n", b"").replace(b"\\", b"")
    files = (b"people", True, b"1\tAnn\n2\tBob"), (b"raw", True, any_bytes), (b"csv", True, b'"x,",3\n')
    given = {"people_structure": "id UInt8, name String", "raw_types": "String", "csv_format": "CSV"}
    given["csv_types"] = "String,Decimal(9, 2)"
    asked = "SELECT groupArray(name), (SELECT hex(_1) FROM raw), (SELECT (_1, _2) FROM csv) FROM people"
    answer = gateway.ask(asked, **form(*files), **given)
    assert answer.body == b"['Ann','Bob']\t%s\t('x,',3)\n" % any_bytes.hex().upper().encode()
    assert gateway.ask("SELECT * FROM people").code == "60"


def test_the_query_may_be_a_field_of_the_form_that_brings_its_table(gateway):
    parts = (b"query", False, b"SELECT a + {n:Int32} FROM t"), (b"param_n", False, b"5")
    described = (b"t_structure", False, b"a Int32"), (b"t", True, b"1\n")
    assert gateway.ask(**form(*parts, *described)).body == b"6\n"


def test_a_table_without_columns_is_refused(gateway):
    assert gateway.ask("SELECT 1", **form((b"t", True, b"1\n"))).code == "36"


@pytest.mark.parametrize("encoding", ["", "zstd", "gzip"])
def test_a_slow_result_is_sent_as_it_comes(gateway, encoding):
    query = "SELECT throwIf(number = 7), sleepEachRow(0.1) FROM numbers(9) SETTINGS max_block_size = 1, max_threads = 1"
    with pytest.raises(http.client.IncompleteRead):
        gateway.ask(f"{query} FORMAT TSV", headers={"Accept-Encoding": encoding})
    assert gateway.ask(f"{query} FORMAT TSV", wait_end_of_query=1).status == 500


def test_extremes_follow_a_result_of_a_text_format(gateway):
    assert gateway.query("SELECT number FROM numbers(3) FORMAT CSV", extremes=1) == b"0\n1\n2\n\n0\n2\n"


COMPRESS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "lz4": lz4.frame.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}

# Of a server.
CODES = {"gzip": 354, "deflate": 354, "lz4": 618, "zstd": 561}


@pytest.mark.parametrize("encoding", COMPRESS)
@given(st.lists(st.binary(max_size=500), min_size=1, max_size=3), st.integers(1, 100))
def test_a_body_of_one_or_more_streams_is_decompressed_however_it_arrives(encoding, values, piece):
    body = b"".join(COMPRESS[encoding](value) for value in values)
    pieces = [body[start : start + piece] for start in range(0, len(body), piece)]
    assert b"".join(codecs.decode_body(pieces, encoding)) == b"".join(values)


@pytest.mark.parametrize("encoding", COMPRESS)
def test_a_body_that_ends_too_early_is_an_error(encoding):
    body = COMPRESS[encoding](bytes(range(256)) * 100)
    with pytest.raises(ClickHouseError, match=rf"^Code: {CODES[encoding]}\."):
        list(codecs.decode_body([body[:-3]], encoding))


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("", ""),
        ("identity", ""),
        ("br", ""),
        ("gzip, deflate", "gzip"),
        ("gzip;q=1.0, zstd;q=0.5, lz4", "zstd"),
        ("zstd;q=0, LZ4", "lz4"),
    ],
)
def test_the_servers_preferred_encoding_is_chosen(accepted, encoding):
    assert codecs.choose_encoding(accepted) == encoding


@pytest.mark.parametrize("method", [codecs.METHOD_NONE, codecs.METHOD_LZ4, codecs.METHOD_ZSTD])
@pytest.mark.parametrize("size", [1, 1000, (1 << 20) + 1])
def test_frames_give_back_what_went_in(method, size):
    data = bytes(range(256)) * (size // 256 + 1)
    frames = codecs.compress_frames(data[:size], method)
    assert b"".join(codecs.decode_frames([frames])) == data[:size]


def test_a_flipped_bit_in_a_frame_is_found():
    frame = bytearray(codecs.compress_frames(b"some data" * 100, codecs.METHOD_LZ4))
    frame[-1] ^= 1
    with pytest.raises(ClickHouseError, match=r"^Code: 271\."):
        codecs.read_frame(Reader(receiver([bytes(frame)])))


@given(st.binary(min_size=25, max_size=200))
def test_any_bytes_are_refused_as_a_frame(data):
    with pytest.raises((ClickHouseError, EOFError)):
        codecs.read_frame(Reader(receiver([data])))


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "lz4", "zstd"])
def test_a_body_that_swells_comes_in_pieces(encoding):
    """For any number of zeros, memory holds no more than one slice of the body can become."""
    zeros, encoder = bytes(1 << 20), codecs.ENCODERS[encoding](1)
    body = b"".join([*(bytes(encoder.compress(zeros)) for _ in range(256)), encoder.flush()])
    whole = [len(piece) for piece in codecs.decode_body([body], encoding)]
    assert sum(whole) == 256 << 20
    assert max(whole) <= 66 << 20


DECODERS = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "lz4": lz4.frame.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}
NASTY = [
    "",
    "ä€😀",
    "tab\there",
    "quote \" and ' and `",
    "back\\slash",
    "line\nbreak",
    "\\N",
    "NULL",
    " lead and trail ",
]


@pytest.mark.parametrize("encoding", COMPRESS)
def test_a_compressed_request_is_understood(gateway, table, encoding):
    rows = "".join(f"{uuid.uuid4()},2020-01-01,{n},0,k,a,b,c,1,2,3,4,5\n" for n in range(1000)).encode()
    answer = gateway.ask(
        f"INSERT INTO {table} FORMAT CSV", body=COMPRESS[encoding](rows), headers={"Content-Encoding": encoding}
    )
    assert answer.status == 200, answer.body
    assert json.loads(answer.headers["X-ClickHouse-Summary"])["written_rows"] == "1000"
    assert gateway.query(f"SELECT count(), sum(number_1) FROM {table}") == b"1000\t499500\n"


@pytest.mark.parametrize("encoding", COMPRESS)
@pytest.mark.parametrize("rows", [0, 1, 500_000])
def test_a_compressed_response_is_what_was_asked_for(gateway, encoding, rows):
    query = f"SELECT number FROM numbers({rows})"
    answer = gateway.ask(query, headers={"Accept-Encoding": encoding})
    assert answer.headers["Content-Encoding"] == (encoding if rows else None)
    assert (DECODERS[encoding](answer.body) if rows else answer.body) == "".join(f"{n}\n" for n in range(rows)).encode()
    plain = gateway.ask("SELECT 1", headers={"Accept-Encoding": encoding}, enable_http_compression=0)
    assert (plain.headers["Content-Encoding"], plain.body) == (None, b"1\n")


@pytest.mark.parametrize("rows", ["-1\n", "1\n" * 300_000 + "-1\n"])
def test_rows_that_the_table_refuses_are_an_error(gateway, rows):
    gateway.query("CREATE OR REPLACE TABLE strict (a Int32, CONSTRAINT c CHECK a > 0) ENGINE = MergeTree ORDER BY a")
    answer = gateway.ask("INSERT INTO strict FORMAT CSV", body=rows.encode())
    assert (answer.code, gateway.query("SELECT count() FROM strict")) == ("469", b"0\n")
    gateway.query("DROP TABLE strict")


def test_an_insert_into_too_many_partitions_is_an_error(gateway):
    gateway.query("CREATE OR REPLACE TABLE parts (a Int32) ENGINE = MergeTree ORDER BY a PARTITION BY a")
    answer = gateway.ask("INSERT INTO parts FORMAT CSV", body="".join(f"{n}\n" for n in range(200)).encode())
    assert (answer.code, gateway.query("SELECT count() FROM parts")) == ("252", b"0\n")
    gateway.query("DROP TABLE parts")


@pytest.mark.parametrize("format", ["CSV", "TabSeparated", "JSONEachRow", "Native", "RowBinary", "Parquet", "Values"])
def test_bytes_that_are_no_data_are_an_error(gateway, table, format):
    answer = gateway.ask(f"INSERT INTO {table} FORMAT {format}", body=b"\xff\xfe\xd4garbage\xff\n" * 50)
    assert answer.status >= 400
    assert int(answer.code) not in (0, 1002) or b"bytes of the data that are not UTF-8" in answer.body
    assert gateway.query(f"SELECT count() FROM {table}") == b"0\n"


def test_the_settings_of_an_insert_are_applied(gateway, table):
    body = b"number_1,text_1\n1,a\nx,b\n2,c\n"
    insert = f"INSERT INTO {table} (number_1, text_1) SETTINGS input_format_allow_errors_num = 1 FORMAT CSVWithNames"
    assert gateway.ask(insert, body=body).status == 200
    assert gateway.query(f"SELECT count() FROM {table}") == b"2\n"


def test_a_damaged_body_inserts_nothing(gateway, table):
    body = gzip.compress(b"x" * 100)[:-4]
    answer = gateway.ask(f"INSERT INTO {table} FORMAT CSV", body=body, headers={"Content-Encoding": "gzip"})
    assert answer.status == 500
    assert gateway.query(f"SELECT count() FROM {table}") == b"0\n"


@pytest.mark.parametrize("method", ["LZ4", "ZSTD", "NONE"])
def test_native_frames_are_understood_in_both_directions(gateway, method):
    body = codecs.compress_frames(b"SELECT 'in frames'", codecs.method_of_setting(method))
    answer = gateway.ask(body=body, decompress=1, compress=1, network_compression_method=method)
    assert b"".join(codecs.decode_frames([answer.body])) == b"in frames\n"


def test_an_unknown_method_for_frames_is_refused(gateway):
    assert gateway.ask("SELECT 1", compress=1, network_compression_method="T64").code == "36"


def test_a_chunked_request_and_keep_alive_work_on_one_connection(gateway, table):
    row = b"%s,2020-01-01,1,2,k,a,b,c,1,2,3,4,5\n"
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", gateway.http_port)) as connection:
        for _ in range(3):
            pieces = (row % str(uuid.uuid4()).encode() for _ in range(100))
            connection.request("POST", f"/?query=INSERT+INTO+{table}+FORMAT+CSV", body=pieces, encode_chunked=True)
            assert connection.getresponse().read() == b""
            connection.request("POST", "/", body=b"SELEKT")
            assert connection.getresponse().read().startswith(b"Code: 62.")
            connection.request("GET", "/ping")
            assert connection.getresponse().read() == b"Ok.\n"
    assert gateway.query(f"SELECT count() FROM {table}") == b"300\n"


@pytest.mark.parametrize("format", ["TabSeparated", "CSV", "JSONEachRow", "CSVWithNames", "JSONCompactEachRow"])
def test_text_survives_a_round_trip(gateway, table, format):
    columns = "entity_key, text_1"
    values = [f"('{uuid.UUID(int=n)}', unhex('{text.encode().hex()}'))" for n, text in enumerate(NASTY)]
    gateway.query(f"INSERT INTO {table} ({columns}) VALUES " + ", ".join(values))
    select = f"SELECT {columns} FROM {table} ORDER BY entity_key"
    before = gateway.query(f"{select} FORMAT {format}")
    gateway.query(f"TRUNCATE TABLE {table}")
    assert gateway.ask(f"INSERT INTO {table} ({columns}) FORMAT {format}", body=before).status == 200
    after = gateway.query(f"SELECT hex(text_1) FROM {table} ORDER BY entity_key").decode().split("\n")[:-1]
    assert [bytes.fromhex(text).decode() for text in after] == NASTY


def test_parquet_goes_in_and_comes_out(gateway, table):
    rows = 200_000
    columns = {"entity_key": [uuid.UUID(int=n).bytes for n in range(rows)], "number_1": list(range(rows))}
    schema = pa.schema([("entity_key", pa.uuid()), ("number_1", pa.int32())])
    arrays = [pa.ExtensionArray.from_storage(pa.uuid(), pa.array(columns["entity_key"], pa.binary(16)))]
    frame = pa.Table.from_arrays([*arrays, pa.array(columns["number_1"], pa.int32())], schema=schema)
    sink = io.BytesIO()
    pyarrow.parquet.write_table(frame, sink)
    answer = gateway.ask(f"INSERT INTO {table} (entity_key, number_1) FORMAT Parquet", body=sink.getvalue())
    assert answer.status == 200, answer.body
    body = gateway.query(f"SELECT number_1, text_1 FROM {table} ORDER BY number_1 FORMAT Parquet")
    back = pyarrow.parquet.read_table(io.BytesIO(body))
    assert back["number_1"].to_pylist() == columns["number_1"]
    stream = gateway.query(f"SELECT number_1 FROM {table} ORDER BY number_1 FORMAT ArrowStream")
    assert pa.ipc.open_stream(stream).read_all()["number_1"].to_pylist() == columns["number_1"]


def test_totals_and_statistics_are_once_in_a_document(gateway):
    query = "SELECT number % 2 AS k, count() AS n FROM numbers(200000) GROUP BY k WITH TOTALS ORDER BY k"
    document = json.loads(gateway.query(f"{query} FORMAT JSON"))
    assert (document["rows"], document["totals"]["n"]) in [(2, 200000), (2, "200000")]
    assert gateway.query(query) == b"0\t100000\n1\t100000\n\n0\t200000\n"


CREDENTIALS = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/ping", 200),
        ("GET", "/replicas_status?", 200),
        ("GET", "/query?query=SELECT+1", 200),
        ("GET", "/ping?", 404),
        ("POST", "/ping", 404),
        ("GET", "/nothing?query=SELECT+1", 404),
        ("GET", "/?", 400),
        ("POST", "/", 400),
        ("PUT", "/?query=SELECT+1", 501),
    ],
)
def test_only_the_targets_of_a_server_are_served(gateway, method, target, status):
    assert gateway.ask(method=method, path=target).status == status


@pytest.mark.parametrize(
    ("value", "status", "code"),
    [
        ("Basic !!!", 500, "1000"),
        ("Basic", 200, None),  # the default user, without a password
        ("Basic " + CREDENTIALS.rstrip("="), 200, None),
        ("Bearer x", 403, "516"),
    ],
)
def test_an_authorization_header_is_read_as_a_server_reads_it(gateway, value, status, code):
    answer = gateway.ask("SELECT 1", user=None, headers={"Authorization": value})
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.long
def test_a_password_in_a_header_is_utf_8(launch, tmp_path):
    users = tmp_path / "users.json"
    users.write_text(json.dumps({"us€r": "pässwörd"}), encoding="utf-8")
    gateway = launch(users=users)
    assert gateway.ask("SELECT 1", user="us€r".encode(), password="pässwörd".encode()).body == b"1\n"
    assert gateway.ask("SELECT 1", user="us€r".encode(), password="pässwörd".encode("latin-1")).code == "516"


def test_a_result_is_counted_when_it_has_ended_before_the_head(gateway):
    answer = gateway.ask("SELECT 1", wait_end_of_query=1)
    assert int(json.loads(answer.headers["X-ClickHouse-Summary"])["result_bytes"]) > 0


def test_a_statement_may_be_any_bytes(gateway):
    assert gateway.ask(body=b"SELECT '\xff\xfe', hex('\xff')").body == b"\xff\xfe\tFF\n"
    assert gateway.ask(body=b"SELECT 1 AS `\xff` FORMAT TSVWithNames").body == b"\xff\n1\n"
    assert gateway.ask(body=b"INSERT INTO `\xff` VALUES (1)").code == "60"
    assert gateway.native().execute("SELECT hex(unhex('FF'))") == [("FF",)]


def test_what_get_may_not_change_is_the_engines_to_say(gateway, table):
    def get(query, **params):
        return gateway.ask(query, method="GET", **params).code

    assert get("INSERT INTO missing VALUES (1)") == "60"
    assert get("DROP TABLE missing") == "60"
    assert get(f"INSERT INTO {table} (number_1) VALUES (1)") == "164"
    assert get(f"DROP TABLE {table}") == "164"
    assert get("CREATE TABLE new (a Int8) ENGINE = Memory") == "164"
    assert gateway.query(f"SELECT count() FROM {table}") == b"0\n"


@pytest.mark.parametrize(
    ("encoding", "body", "status", "code"),
    [
        ("nope", b"SELECT 1", 501, "48"),
        ("identity", b"SELECT 1", 501, "48"),
        ("none", b"SELECT 1", 200, None),
        ("gzip", b"SELECT 1", 500, "354"),
        ("deflate", b"SELECT 1", 500, "354"),
        ("lz4", b"SELECT 1", 500, "618"),
        ("zstd", b"SELECT 1", 500, "561"),
    ],
)
def test_a_body_whose_encoding_is_unknown_or_wrong_is_refused_with_the_code_of_a_server(
    gateway, encoding, body, status, code
):
    answer = gateway.ask(body=body, headers={"Content-Encoding": encoding})
    assert (answer.status, answer.code) == (status, code)


def changed(frame, place, data):
    return frame[:place] + data + frame[place + len(data) :]


FRAME = compress_frames(b"SELECT 1", METHOD_NONE)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (changed(FRAME, 0, bytes(16)), "271"),  # the checksum
        (FRAME[:-1], "33"),
        (changed(FRAME, 17, struct.pack("<I", 0x7FFFFFFF)), "39"),
    ],
)
def test_a_damaged_frame_is_refused_with_the_code_of_a_server(gateway, body, code):
    assert gateway.ask(body=body, decompress=1).code == code


@pytest.mark.parametrize("revision", [0, 54405])
@pytest.mark.parametrize("encoding", ["lz4", "zstd", "gzip"])
def test_an_answer_of_no_bytes_has_no_encoding(gateway, encoding, revision):
    nothing = "SELECT 1 WHERE 0 FORMAT Native"
    answer = gateway.ask(nothing, headers={"Accept-Encoding": encoding}, client_protocol_version=revision)
    assert (answer.body, answer.headers["Content-Encoding"]) == (b"", None)
    answer = gateway.ask("SELECT 1 FORMAT Native", headers={"Accept-Encoding": "lz4"})
    assert lz4.frame.decompress(answer.body).endswith(b"\x01")


def test_a_file_into_which_to_write_is_the_clients_over_the_native_protocol(gateway, tmp_path):
    target = f"INTO OUTFILE '{tmp_path}/file' TRUNCATE COMPRESSION 'none'"
    assert gateway.native().execute(f"SELECT 1 {target} FORMAT CSV SETTINGS max_threads = 1") == [(1,)]
    assert gateway.native().execute(f"SELECT 'INTO OUTFILE' {target}") == [("INTO OUTFILE",)]
    assert gateway.ask(f"SELECT 1 {target}").code == "358"
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(("kind", "found"), [("USERS", b"default\n"), ("POLICIES", b""), ("ROLES", b"")])
def test_users_policies_and_roles_can_be_listed(gateway, kind, found):
    assert gateway.query(f"SHOW {kind}") == found


def test_a_request_of_http_at_the_native_port_is_sent_to_the_http_port(gateway):
    with gateway.raw(gateway.native_port) as connection:
        connection.sendall(b"GET /?query=SELECT+1 HTTP/1.1\r\n\r\n")
        told = f"Port {gateway.native_port} is for clickhouse-client program\r\n"
        assert connection.recv(1 << 16).decode() == f"HTTP/1.0 400 Bad Request\r\n\r\n{told}"
