"""Bodies over HTTP: compressed, chunked, damaged, in every format, with the standard library's client."""

import contextlib
import gzip
import http.client
import io
import json
import uuid
import zlib

import lz4.frame
import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard

from harness.systems.clickhouse.gateway import codecs

ENCODERS = {"gzip": gzip.compress, "deflate": zlib.compress, "lz4": lz4.frame.compress, "zstd": zstandard.compress}
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


@pytest.mark.parametrize("encoding", ENCODERS)
def test_a_compressed_request_is_understood(gateway, table, encoding):
    rows = "".join(f"{uuid.uuid4()},2020-01-01,{n},0,k,a,b,c,1,2,3,4,5\n" for n in range(1000)).encode()
    answer = gateway.ask(
        f"INSERT INTO {table} FORMAT CSV", body=ENCODERS[encoding](rows), headers={"Content-Encoding": encoding}
    )
    assert answer.status == 200, answer.body
    assert json.loads(answer.headers["X-ClickHouse-Summary"])["written_rows"] == "1000"
    assert gateway.query(f"SELECT count(), sum(number_1) FROM {table}") == b"1000\t499500\n"


@pytest.mark.parametrize("encoding", ENCODERS)
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
