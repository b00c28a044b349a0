"""The ClickHouse transports beyond the published ones, on the engine and hostile rows, value by value."""

import subprocess
import sys
from collections.abc import Iterator

import clickhouse_driver
import pandas as pd
import polars as pl
import pytest

from harness import registry
from harness.check.canonical import as_pandas, canonicalise
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import Operation, Origin, Transport
from tests.calls import called, each, uri_of
from tests.transports.clickhouse_table import DEFINITION, LOGICAL_TYPES, UUIDS, hostile_frame, stored, wrong
from tests.transports.tuned_calls import own_database

pytestmark = pytest.mark.process

OURS = [entry for entry in registry.select("clickhouse.*") if entry.origin is Origin.BEYOND and not entry.needs]
WRITES = [entry for entry in OURS if entry.operation is Operation.WRITE]
READS = [entry for entry in OURS if entry.operation is Operation.READ]
CONNECTORX = [entry for entry in READS if entry.client == "connectorx"]
IMPOSSIBLE = [
    entry
    for entry in WRITES
    if entry.settings["async_insert"] == "1" or entry.function.__name__ == "write_pandas_insert_dataframe"
]
LOST_HERE = {"nan", "nulls", "int64_beside_null", "nul_character"}  # kinds that some are declared to change
READ, WRITTEN = "read values", "written values"
DATABASE = f"{namespace()}_values"


@pytest.fixture(scope="module")
def server(embedded_lab: EmbeddedLab) -> Iterator[clickhouse_driver.Client]:
    """A connection to a database with a table to read, and one to write."""
    with own_database(embedded_lab, DATABASE) as client:
        for table in (READ, WRITTEN):
            client.execute(f"CREATE TABLE `{table}` ({DEFINITION}) ENGINE = MergeTree ORDER BY place")
        client.execute(f"INSERT INTO `{READ}` VALUES", hostile_frame().rows())
        yield client


def address(entry: Transport, lab: EmbeddedLab) -> str:
    return uri_of(entry, lab).replace(namespace(), DATABASE)


def without_loss(entries: list[Transport], but: list[Transport]) -> list[Transport]:
    return [entry for entry in entries if entry not in but and not LOST_HERE & entry.lossy.keys()]


def missing_as_nan(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("value").fill_null(float("nan")))


@pytest.mark.long
@each(without_loss(WRITES, IMPOSSIBLE))
def test_a_write_keeps_every_value(
    entry: Transport, embedded_lab: EmbeddedLab, server: clickhouse_driver.Client
) -> None:
    server.execute(f"TRUNCATE TABLE `{WRITTEN}`")
    frame = hostile_frame().with_columns(pl.col("key").str.to_uppercase())
    given = as_pandas(frame, LOGICAL_TYPES) if entry.frame == "pandas" else frame
    before = given.copy() if entry.frame == "pandas" else given.clone()
    called(entry, address(entry, embedded_lab), given, WRITTEN)
    expected = missing_as_nan(hostile_frame()) if entry.frame == "pandas" else hostile_frame()
    assert wrong(expected, stored(server, WRITTEN)) == []
    assert given.equals(before), "the caller's frame was changed"


def lost(entry: Transport, uri: str) -> list[str]:
    """Read the table and return the differences; in pandas a NaN may be a null, except for lossless transports."""
    expected, (found, _) = hostile_frame(), canonicalise(called(entry, uri, READ), LOGICAL_TYPES)
    if entry.frame == "pandas" and not entry.id.endswith("_lossless"):
        expected, found = missing_as_nan(expected), missing_as_nan(found)
    return wrong(expected, found)


@pytest.mark.long
@each(without_loss(READS, CONNECTORX))
def test_a_read_keeps_every_value(
    entry: Transport, embedded_lab: EmbeddedLab, server: clickhouse_driver.Client
) -> None:
    assert lost(entry, address(entry, embedded_lab)) == []


@each(CONNECTORX)
def test_connectorx_says_which_setting_a_server_needs_whose_answers_it_cannot_read(
    entry: Transport, embedded_lab: EmbeddedLab, server: clickhouse_driver.Client
) -> None:
    with pytest.raises(registry.Unsupported, match="network_compression_method to LZ4"):
        lost(entry, address(entry, embedded_lab))


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
def with_lz4(embedded_lab: EmbeddedLab, server: clickhouse_driver.Client) -> Iterator[str]:
    """The HTTP address of a relay that adds settings to every request, as a user's profile on a server does."""
    before, _, port = address(CONNECTORX[0], embedded_lab).partition("/?")[0].rpartition(":")
    # A separate process: connectorx holds Python's lock while it waits for the answer.
    relay = subprocess.Popen([sys.executable, "-c", PROFILE, port], stdout=subprocess.PIPE, text=True)
    assert relay.stdout
    yield f"{before}:{relay.stdout.readline().strip()}/?database={DATABASE}"
    relay.kill()
    relay.wait()


@each(CONNECTORX)
def test_connectorx_keeps_every_value_where_the_server_compresses_with_lz4(entry: Transport, with_lz4: str) -> None:
    assert lost(entry, with_lz4) == []


@each(IMPOSSIBLE)
def test_what_cannot_be_done_here_is_said_to_be_unsupported(
    entry: Transport, embedded_lab: EmbeddedLab, server: clickhouse_driver.Client
) -> None:
    frame = pl.DataFrame({"place": [1], "key": [UUIDS[1]]}, schema={"place": pl.Int32, "key": pl.String})
    given: pl.DataFrame | pd.DataFrame = frame.to_pandas() if entry.frame == "pandas" else frame
    with pytest.raises(registry.Unsupported):
        called(entry, address(entry, embedded_lab), given, WRITTEN)


@pytest.mark.parametrize("name", ["write_polars_native", "write_polars_row_binary"])
def test_an_own_encoder_refuses_what_it_cannot_encode(
    name: str, embedded_lab: EmbeddedLab, server: clickhouse_driver.Client
) -> None:
    entry = registry.one(f"clickhouse.httpx.{name}")
    server.execute("CREATE OR REPLACE TABLE odd (a Int8, b Array(Int8)) ENGINE = Memory")
    for frame, error in (
        (pl.DataFrame({"b": [[1]]}), registry.Unsupported),
        (pl.DataFrame({"a": [1_000]}), Exception),
        (pl.DataFrame({"a": [None, 1]}), Exception),
    ):
        with pytest.raises(error):
            called(entry, address(entry, embedded_lab), frame, "odd")
    assert server.execute("SELECT count() FROM odd") == [(0,)]
