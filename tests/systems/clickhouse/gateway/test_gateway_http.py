"""The HTTP protocol, with the standard library's client and plain sockets."""

import contextlib
import http.client
import itertools
import json
import threading
import urllib.parse
import uuid
from xml.etree import ElementTree

import pytest

from harness.systems.clickhouse.gateway.http import _Text
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
        assert ask("SELECT 1 SETTINGS max_block_size = 7") == b"1\n"
        assert ask("SET max_block_size = 8") == empty
        assert ask(block_size) == default
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
