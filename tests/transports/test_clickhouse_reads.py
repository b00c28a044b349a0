"""Rules of the ClickHouse reads beyond the published ones, on the engine: nothing is lost, no part is a whole."""

import datetime
import io
import math
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import polars as pl
import pyarrow as pa
import pytest

from harness import registry
from harness.check.canonical import canonicalise
from harness.check.equality import differences
from harness.machine.variables import namespace
from harness.model import Operation, Origin
from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse
from tests.calls import called, each

pytestmark = pytest.mark.process

OURS = [
    entry
    for entry in registry.select("clickhouse.*")
    if entry.operation is Operation.READ and entry.origin is Origin.BEYOND and "s3" not in entry.needs
]
CONNECTORX = [entry for entry in OURS if entry.client == "connectorx"]
READS = [entry for entry in OURS if entry not in CONNECTORX]
# Kinds of values that are in the table below and that some transports are known to lose.
LOSSES = {"int64_beside_null", "nul_character"}
LOGICAL_TYPES = {
    "id": "int64", "u": "uuid", "d": "date", "i": "int32", "b": "int64", "t": "text", "f": "float64", "f2": "float64",
    "t2": "text", "lc": "text", "lcn": "text", "un": "uuid", "d32": "date",
}  # fmt: skip
COLUMNS = (
    "id Int64, u Nullable(UUID), d Nullable(Date), i Nullable(Int32), b Nullable(Int64), t Nullable(String), "
    "f Nullable(Float64), f2 Float64, t2 String, lc LowCardinality(String), lcn LowCardinality(Nullable(String)), "
    "un UUID, d32 Date32"
)
TEXTS = [
    "", None, r"\N", "NULL", "NA", "nan", "\t", "a\tb", "\n", "a\nb", "\r", "a\r\nb", '"', 'a"b', '""', "'", "\\",
    r"a\b", r"\t", r"\\N", ",", "a,b", " ", " a ", "😀", "None", "1", "1.5", "2025-01-01", "\0", "a\0b", "\b", "\f",
    "%s", "x" * 300,
]  # fmt: skip
FLOATS = [
    math.nan,
    math.inf,
    -math.inf,
    -0.0,
    5e-324,
    1e-310,
    1.7976931348623157e308,
    0.1,
    None,
    1e22,
    9007199254740993.0,
]
UUIDS = [str(uuid.UUID(int=number)) for number in (0, 2**128 - 1, 0x0123456789ABCDEF0123456789ABCDEF)]
DATES = [datetime.date(1970, 1, 1), datetime.date(2149, 6, 6), None]
LONG_AGO = [datetime.date(1900, 1, 1), datetime.date(2299, 12, 31)]
INTEGERS, LONGS = [-(2**31), 2**31 - 1, 0, None], [-(2**63), 2**63 - 1, 2**53 + 1, None, 0]
LATE = "SELECT number AS id, concat(randomPrintableASCII(200), toString(throwIf(number = 20000, 'broke late'))) AS t"


@pytest.fixture(scope="module")
def server(embedded_lab):
    """The reference client, in the lab's database."""
    client = clickhouse.open_connection(embedded_lab.endpoints)
    clickhouse.ensure_namespace(client)
    yield client
    client.command(f"DROP DATABASE {namespace()} SYNC")
    client.close()


@pytest.fixture(scope="module")
def uris(embedded_lab, server):
    """The addresses that transports are given."""
    endpoints = ("clickhouse_http", "clickhouse_native")
    return {name: SYSTEMS["clickhouse"].client.transport_uri(name, embedded_lab.endpoints[name]) for name in endpoints}


@pytest.fixture(scope="module")
def hostile(server):
    """A table of values that transports lose, and the frame that a read must return."""
    rows = math.lcm(len(FLOATS), len(UUIDS) + 1) * 4
    several = (range(rows), [*UUIDS, None], DATES, INTEGERS, LONGS, TEXTS, FLOATS, FLOATS, TEXTS[7:], TEXTS[3:])
    columns = [[values[row % len(values)] for row in range(rows)] for values in (*several, TEXTS, UUIDS, LONG_AGO)]
    for place, default in ((7, 0.0), (8, ""), (9, "")):  # not Nullable
        columns[place] = [default if value is None else value for value in columns[place]]
    dtypes = {"uuid": pl.String, "date": pl.Date, "int32": pl.Int32, "int64": pl.Int64, "text": pl.String}
    schema = {name: dtypes.get(logical, pl.Float64) for name, logical in LOGICAL_TYPES.items()}
    server.command(f"CREATE TABLE {namespace()}.hostile ({COLUMNS}) ENGINE = MergeTree ORDER BY id")
    server.insert(f"{namespace()}.hostile", columns, column_names=list(LOGICAL_TYPES), column_oriented=True)
    return pl.DataFrame(dict(zip(LOGICAL_TYPES, columns, strict=True)), schema=schema)


@pytest.fixture(scope="module")
def breaks_late(server):
    """A view whose query fails after some megabytes."""
    server.command(f"CREATE VIEW {namespace()}.breaks_late AS {LATE} FROM numbers(30000) SETTINGS max_block_size = 500")
    return "breaks_late"


def lost(entry, uri, expected):
    """Read the table and return the differences; in pandas a NaN may be a null, except for lossless transports."""
    canonical, _ = canonicalise(called(entry, uri, "hostile"), LOGICAL_TYPES)
    if entry.frame == "pandas" and not entry.id.endswith("_lossless"):
        expected, canonical = (frame.with_columns(pl.col("f").fill_null(math.nan)) for frame in (expected, canonical))
    return differences(expected, canonical, ("id",))


@pytest.mark.long
@each(entry for entry in READS if not LOSSES & entry.lossy.keys())
def test_every_hostile_value_comes_through_a_read_that_is_not_declared_to_lose_its_kind(entry, uris, hostile):
    assert lost(entry, uris[entry.endpoint], hostile) == []


@pytest.mark.long
@each(READS)
def test_a_server_that_fails_after_the_first_rows_raises(entry, uris, breaks_late):
    with pytest.raises(Exception, match=r"broke late|[Ii]ncomplete|not completed|Connection broken|peer closed"):
        called(entry, uris[entry.endpoint], breaks_late)


LOST = {"int64_beside_null", "digits", "null_text", "nulls"}


@each(entry for entry in registry.select("clickhouse.*.read_*") if entry.published and LOST & entry.lossy.keys())
def test_a_published_read_that_loses_values_has_a_lossless_twin(entry):
    """The twin has the same path and frame; for HTTP any client counts, because the data are the same."""
    twins = registry.select(f"clickhouse.*.{entry.function.__name__}_lossless")
    assert [twin for twin in twins if twin.path == entry.path and not LOST & twin.lossy.keys()]


@each(CONNECTORX)
def test_connectorx_says_which_setting_a_server_needs_whose_answers_it_cannot_read(entry, uris, hostile):
    with pytest.raises(registry.Unsupported, match="network_compression_method to LZ4"):
        called(entry, uris["clickhouse_http"], "hostile")


PROFILE = """
import socket, sys, threading

def pump(source, target, setting):
    while data := source.recv(65536):
        target.sendall(data.replace(b"/?", b"/?network_compression_method=LZ4&", 1) if setting else data)
    target.shutdown(socket.SHUT_WR)

listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
while True:
    client, server = listening.accept()[0], socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    threading.Thread(target=pump, args=(client, server, True), daemon=True).start()
    threading.Thread(target=pump, args=(server, client, False), daemon=True).start()
"""


@pytest.fixture(scope="module")
def with_lz4(uris):
    """The HTTP address of a relay that adds settings to every request, as a user's profile on a server does."""
    before, _, port = uris["clickhouse_http"].partition("/?")[0].rpartition(":")
    # A separate process: connectorx holds Python's lock while it waits for the answer.
    relay = subprocess.Popen([sys.executable, "-c", PROFILE, port], stdout=subprocess.PIPE, text=True)
    assert relay.stdout
    yield f"{before}:{relay.stdout.readline().strip()}/?database={namespace()}"
    relay.kill()
    relay.wait()


@each(CONNECTORX)
def test_connectorx_brings_every_hostile_value_through_where_the_server_compresses_with_lz4(entry, with_lz4, hostile):
    assert lost(entry, with_lz4, hostile) == []


@pytest.fixture
def cut_off():
    """Start a server that answers everything but SELECT 1 with given bytes; returns its address for them."""
    servers = []

    def start(answer):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                query = self.rfile.read(int(self.headers["Content-Length"]))
                body = b"1\n" if query == b"SELECT 1" else answer
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://user:password@127.0.0.1:{servers[-1].server_port}/?database=x"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def an_arrow_stream(batches):
    """Two batches' worth of an Arrow stream, of which only the first ones are there, and no end mark."""
    whole = io.BytesIO()
    table = pa.table({"a": [1, 2, 3, 4]})
    writer = pa.ipc.new_stream(whole, table.schema)
    for batch in table.to_batches(max_chunksize=2)[:batches]:
        writer.write_batch(batch)
    return whole.getvalue()


@pytest.mark.long
@each(
    entry
    for entry in registry.select("clickhouse.httpx.read_*_arrow_stream*")
    if "http_" not in entry.id  # where the compression's own frame is cut off
)
@pytest.mark.parametrize("batches", [0, 1])
def test_an_arrow_stream_that_ends_at_the_end_of_a_batch_is_not_taken_for_the_whole(entry, batches, cut_off):
    with pytest.raises(RuntimeError, match=r"the Arrow stream of .* breaks off: it has no end mark"):
        called(entry, cut_off(an_arrow_stream(batches)), "t")


CUT = {
    "read_*_arrow_file": b"ARROW1\0\0" + an_arrow_stream(1),
    "read_*_parquet_[!s]*": b"PAR1" + b"\0" * 100,
    "read_*_native": b"\x01\x02\x01a\x06String\x01x\x05y",
    "read_*_row_binary": b"\x02\x01a\x01b\x06String\x05Int32\x01x\x01\0\0\0\x01y\x01",
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("entry", "answer"),
    [
        (entry, body)
        for name, body in CUT.items()
        for entry in registry.select(f"clickhouse.httpx.{name}")
        if not entry.needs
    ],
    ids=lambda part: getattr(part, "id", ""),
)
def test_an_answer_that_ends_within_a_row_block_or_file_raises(entry, answer, cut_off):
    with pytest.raises(Exception, match=r"(?i)breaks off|expected|invalid|magic|footer|file|not an arrow"):
        called(entry, cut_off(answer), "t")


def test_a_type_that_a_decoder_does_not_know_is_refused_by_name(server, uris):
    server.command(f"CREATE VIEW {namespace()}.arrays AS SELECT [1, 2] AS a")
    for name in ("read_polars_native", "read_polars_row_binary"):
        entry = registry.one(f"clickhouse.httpx.{name}")
        with pytest.raises(registry.Unsupported, match="Array"):
            called(entry, uris["clickhouse_http"], "arrays")


def test_a_string_that_is_no_text_is_refused_and_not_passed_on(server, uris):
    server.command(f"CREATE VIEW {namespace()}.bytes AS SELECT unhex('ff00') AS a")
    for name in ("read_polars_native", "read_polars_row_binary"):
        with pytest.raises(pa.ArrowInvalid, match="UTF8"):
            called(registry.one(f"clickhouse.httpx.{name}"), uris["clickhouse_http"], "bytes")


@pytest.mark.parametrize("name", ["read_polars_native", "read_polars_native_http_lz4", "read_polars_native_http_zstd"])
def test_an_answer_of_no_bytes_is_not_unpacked(name, server, uris):
    server.command(f"CREATE OR REPLACE TABLE {namespace()}.nothing (a Int32) ENGINE = Memory")
    entry = registry.one(f"clickhouse.httpx.{name}")
    with (
        registry.connect_of(entry)(uris[entry.endpoint]) as connection,
        pytest.raises(registry.Unsupported, match="says nothing of the columns of a table without rows"),
    ):
        entry.function(connection, "nothing")
