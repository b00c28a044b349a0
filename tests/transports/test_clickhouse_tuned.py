"""The tuned ClickHouse transports: values that are hard for an encoder, on a real engine."""

import datetime
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import clickhouse_driver
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from arrow_wire import UnsupportedType, clickhouse_write
from arrow_wire import clickhouse as wire

from harness.check.canonical import as_pandas, canonicalise
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.systems.clickhouse import client as clickhouse
from harness.transports.clickhouse.http_client import tuned
from tests.transports.clickhouse_table import DEFINITION, LOGICAL_TYPES, UUIDS, hostile_frame, wrong
from tests.transports.tuned_calls import own_database

DATABASE = f"{namespace()}_tuned"


@pytest.fixture(scope="module")
def server(embedded_lab: EmbeddedLab) -> Iterator[clickhouse_driver.Client]:
    with own_database(embedded_lab, DATABASE) as client:
        yield client


@pytest.fixture
def call(embedded_lab: EmbeddedLab, server: clickhouse_driver.Client) -> Callable[..., Any]:
    """Call one of the four transports with a new connection."""
    uri = clickhouse.transport_uri("clickhouse_http", embedded_lab.endpoints["clickhouse_http"])

    def run(name: str, *arguments: Any) -> Any:
        with tuned.connect(uri.replace(namespace(), DATABASE)) as connection:
            return getattr(tuned, f"{name}_tuned")(connection, *arguments)

    return run


def make(server: clickhouse_driver.Client, columns: str, rest: str = "ENGINE = Memory", table: str = "odd") -> None:
    server.execute(f"CREATE OR REPLACE TABLE {table} ({columns}) {rest}")


def staging_tables(server: clickhouse_driver.Client) -> list[tuple[str]]:
    return server.execute("SELECT name FROM system.tables WHERE database = currentDatabase() AND name LIKE '%staging%'")


@pytest.fixture(params=["PARTITION BY toYYYYMM(month)", "PARTITION BY month", "PARTITION BY word", ""])
def table(request: pytest.FixtureRequest, server: clickhouse_driver.Client) -> str:
    settings = "ORDER BY place SETTINGS allow_nullable_key = 1"
    make(server, DEFINITION, f"ENGINE = MergeTree {request.param} {settings}", "hostile")
    return "hostile"


def test_hostile_values_of_polars_come_through_and_back(table, call):
    frame = hostile_frame()
    call("write_polars", frame, table)
    found = call("read_polars", table)
    assert found.schema == frame.schema
    assert wrong(frame, found) == []


def test_hostile_values_of_pandas_come_through_and_back(table, call):
    expected = hostile_frame().with_columns(pl.col("value").fill_null(math.nan))  # numpy has no null
    call("write_pandas", as_pandas(expected, LOGICAL_TYPES), table)
    found = call("read_pandas", table)
    assert [str(found[name].dtype) for name in ("month", "te xt", "place")] == ["datetime64[us]", "str", "int32"]
    assert wrong(expected, canonicalise(found, LOGICAL_TYPES)[0]) == []


@pytest.mark.long
def test_a_frame_of_many_slices_partitions_and_blocks_comes_through_and_back(server, call, monkeypatch):
    monkeypatch.setattr(clickhouse_write, "SLICE_ROWS", 7_000)
    make(server, "n UInt32, d Date, s String", "ENGINE = MergeTree PARTITION BY toYear(d) ORDER BY n")
    numbers = pl.select(n=pl.int_range(100_000, dtype=pl.UInt32)).select("n", d=(pl.col("n") % 30_000).cast(pl.Date))
    frame = numbers.with_columns(s=pl.lit("text of number ") + pl.col("n").cast(pl.String))
    call("write_polars", frame, "odd")
    assert call("read_polars", "odd").sort("n").equals(frame)


def test_rows_that_no_table_promised_are_read_as_well(server, call):
    server.execute("CREATE OR REPLACE VIEW unknown AS SELECT number, toString(number) AS text FROM numbers(200000)")
    found = call("read_polars", "unknown")
    assert found.equals(
        pl.select(number=pl.int_range(200_000, dtype=pl.UInt64)).with_columns(text=pl.col("number").cast(pl.String))
    )


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("b", [[1]]),
        pl.Series("b", [datetime.time(1)]),
        pl.Series("b", [None], dtype=pl.Int8),
        pl.Series("c", [1]),
    ],
)
def test_a_column_that_cannot_be_written_is_named_before_anything_is_sent(server, call, column):
    make(server, "a Int8, b Int8")
    with pytest.raises(UnsupportedType, match=f'column "{column.name}"'):
        call("write_polars", pl.DataFrame([pl.Series("a", [1], dtype=pl.Int8), column]), "odd")
    assert server.execute("SELECT count() FROM odd") == [(0,)]


def test_pandas_timestamps_with_a_time_of_day_are_refused(server, call):
    make(server, "d Date")
    with pytest.raises(ValueError, match=r'column "d": row 0: Date does not hold .* exactly'):
        call("write_pandas", pd.DataFrame({"d": pd.to_datetime(["2025-01-01 00:00:01"])}), "odd")


def test_a_column_that_cannot_be_read_is_named(server, call):
    make(server, "a Int8, b AggregateFunction(sum, Int8)")
    for library in ("polars", "pandas"):
        with pytest.raises(
            UnsupportedType, match=r'column "b": AggregateFunction\(sum, Int8\) is not a type that can be read'
        ):
            call(f"read_{library}", "odd")
    make(server, "b Decimal(76, 2)")
    with pytest.raises(UnsupportedType, match=r'column "b": polars holds at most 38 digits, not decimal256'):
        call("read_polars", "odd")


@pytest.mark.parametrize(
    "key", ["", "x" * 36, "01234567-89ab-cdef-fedc-ba987654321", "01234567089ab-cdef-fedc-ba9876543210"]
)
def test_a_text_that_is_no_uuid_fails_and_names_its_column(server, call, key):
    make(server, "key UUID")
    with pytest.raises(ValueError, match=r'column "key": row 1: .* is not a UUID'):
        call("write_polars", pl.DataFrame({"key": [UUIDS[2], key]}), "odd")


def test_a_day_that_the_column_does_not_hold_fails(server, call):
    make(server, "d Date")
    with pytest.raises(ValueError, match='column "d"'):
        call("write_polars", pl.DataFrame({"d": [datetime.date(1969, 12, 31)]}), "odd")


@pytest.mark.parametrize("engine", ["MergeTree PARTITION BY n ORDER BY n", "Memory", "Log"])
def test_a_value_that_fails_late_leaves_nothing(server, call, monkeypatch, engine):
    monkeypatch.setattr(clickhouse_write, "SLICE_ROWS", 1_000)
    make(server, "n UInt8, d Date", f"ENGINE = {engine}")
    server.execute("INSERT INTO odd VALUES (1, '2025-01-01')")
    days = [datetime.date(2025, 1, 1)] * 20_000 + [datetime.date(1969, 1, 1)]
    with pytest.raises(ValueError, match=r'column "d": row \d+: .* does not fit Date'):
        call("write_polars", pl.DataFrame({"n": [number % 7 for number in range(20_001)], "d": days}), "odd")
    assert server.execute("SELECT n FROM odd") == [(1,)]
    assert staging_tables(server) == []
    call("write_polars", pl.DataFrame({"n": [2], "d": days[:1]}), "odd")  # a successful write adds its rows
    assert sorted(server.execute("SELECT n FROM odd")) == [(1,), (2,)]


def test_materialized_views_get_what_is_written(server, call):
    make(server, "n UInt8", "ENGINE = MergeTree ORDER BY n")
    server.execute("CREATE MATERIALIZED VIEW seen ENGINE = Memory AS SELECT n + 1 AS m FROM odd")
    call("write_polars", pl.DataFrame({"n": [1, 2]}), "odd")
    assert server.execute("SELECT m FROM seen ORDER BY m") == [(2,), (3,)]
    assert server.execute("SELECT n FROM odd ORDER BY n") == [(1,), (2,)]
    server.execute("DROP TABLE seen")


def test_no_session_sees_a_part_of_what_is_written(server, embedded_lab, call):
    make(server, "n UInt32, g UInt8", "ENGINE = MergeTree PARTITION BY g ORDER BY n")
    frame = pl.select(n=pl.int_range(600_000, dtype=pl.UInt32)).with_columns(g=(pl.col("n") % 40).cast(pl.UInt8))
    seen, done = set[int](), threading.Event()

    def look() -> None:
        with clickhouse_driver.Client.from_url(embedded_lab.endpoints["clickhouse_native"]) as client:
            while not done.is_set():
                seen.add(client.execute(f"SELECT count() FROM {DATABASE}.odd")[0][0])

    looking = threading.Thread(target=look)
    looking.start()
    call("write_polars", frame, "odd")
    done.set()
    looking.join()
    assert seen <= {0, 600_000}
    assert server.execute("SELECT count() FROM odd") == [(600_000,)]


def test_streams_go_in_and_come_out(server, embedded_lab):
    make(server, "n UInt32, s Nullable(String)", "ENGINE = MergeTree ORDER BY n")
    schema = {"n": pl.UInt32, "s": pl.String}
    batches = [pl.DataFrame({"n": [n], "s": [None if n % 3 else "x" * n]}, schema) for n in range(500)]
    tables = [batch.to_arrow() for batch in batches]
    reader = pa.RecordBatchReader.from_batches(tables[0].schema, (b for table in tables for b in table.to_batches()))
    uri = clickhouse.transport_uri("clickhouse_http", embedded_lab.endpoints["clickhouse_http"])
    uri = uri.replace(namespace(), DATABASE)
    with tuned.connect(uri) as connection:
        wire.write(connection, "odd", reader)
        found = wire.stream(connection, "odd")
        assert pl.DataFrame(pl.from_arrow(found.read_all())).sort("n").equals(pl.concat(batches))


def test_a_failure_in_the_middle_of_an_answer_raises_what_the_server_says(server, call):
    select = "SELECT number, throwIf(number = 2900000, 'broke late') AS thrown FROM numbers(3000000)"
    server.execute(f"CREATE OR REPLACE VIEW breaking AS {select}")
    for library in ("polars", "pandas"):
        with pytest.raises(RuntimeError, match="broke late"):
            call(f"read_{library}", "breaking")


@pytest.mark.parametrize("text", ["unhex('ff')", "unhex('6162636465666768696a6b6c6d6e6f70c3')"])
def test_a_string_that_is_no_utf_8_is_refused(server, call, text):
    server.execute(f"CREATE OR REPLACE VIEW bytes AS SELECT {text} AS s")
    with pytest.raises(Exception, match=r"(?i)utf-?8"):
        call("read_polars", "bytes")
