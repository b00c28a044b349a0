"""The ClickHouse reads beyond the published ones, on the engine: no part of an answer is taken for the whole."""

import io
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest

from harness import registry
from harness.machine.variables import namespace
from harness.model import Operation, Origin
from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse
from harness.transports.clickhouse.server import raise_if_broken_off
from tests.calls import called, each

pytestmark = pytest.mark.process

READS = [
    entry
    for entry in registry.select("clickhouse.*")
    if entry.operation is Operation.READ
    and entry.origin is Origin.BEYOND
    and "s3" not in entry.needs
    and entry.client != "connectorx"
]
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
def breaks_late(server):
    """A view whose query fails after some megabytes."""
    server.command(f"CREATE VIEW {namespace()}.breaks_late AS {LATE} FROM numbers(30000) SETTINGS max_block_size = 500")
    return "breaks_late"


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


@pytest.mark.parametrize("name", ["read_polars_native", "read_polars_row_binary"])
@pytest.mark.parametrize(
    ("value", "error", "said"),
    [("[1, 2]", registry.Unsupported, "Array"), ("unhex('ff00')", pa.ArrowInvalid, "UTF8")],
    ids=["a type that it does not know", "a string that is no text"],
)
def test_what_a_decoder_cannot_take_is_refused_and_named(name, value, error, said, server, uris):
    server.command(f"CREATE OR REPLACE VIEW {namespace()}.refused AS SELECT {value} AS a")
    with pytest.raises(error, match=said):
        called(registry.one(f"clickhouse.httpx.{name}"), uris["clickhouse_http"], "refused")


@pytest.mark.parametrize("name", ["read_polars_native", "read_polars_native_http_lz4", "read_polars_native_http_zstd"])
def test_an_answer_of_no_bytes_is_not_unpacked(name, server, uris):
    server.command(f"CREATE OR REPLACE TABLE {namespace()}.nothing (a Int32) ENGINE = Memory")
    entry = registry.one(f"clickhouse.httpx.{name}")
    with (
        registry.connect_of(entry)(uris[entry.endpoint]) as connection,
        pytest.raises(registry.Unsupported, match="says nothing of the columns of a table without rows"),
    ):
        entry.function(connection, "nothing")


def test_every_insert_says_whether_it_is_asynchronous():
    for entry in registry.select("clickhouse.*.write_*"):
        assert entry.settings["async_insert"] == ("1" if "_async_insert_" in entry.id else "0"), entry.id


def test_an_answer_that_ends_with_the_mark_of_a_late_failure_is_refused():
    tag = "rwzhvnamhqcfyfbh"
    message = f"\r\n__exception__\r\n{tag}\r\nCode: 395. DB::Exception: broke late\n37 {tag}\r\n__exception__\r\n"
    with pytest.raises(RuntimeError, match="Code: 395"):
        raise_if_broken_off(b"1,2\n" * 1000 + message.encode(), tag)


@pytest.mark.parametrize("tag", [None, "rwzhvnamhqcfyfbh"])
def test_a_whole_answer_is_accepted_with_and_without_a_tag(tag):
    assert raise_if_broken_off(b"1,2\n" * 1000, tag) is None
