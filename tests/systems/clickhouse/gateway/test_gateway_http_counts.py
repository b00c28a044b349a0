"""Headers of an HTTP answer about its query: counts, progress, time zone; the Native format of a later revision."""

import http.client
import json

import pytest


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
