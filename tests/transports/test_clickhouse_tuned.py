"""The tuned ClickHouse transports: values that are hard for an encoder, on a real engine."""

import datetime
import threading
from collections.abc import Callable, Iterator
from typing import Any

import clickhouse_driver
import pandas as pd
import polars as pl
import pytest
from arrow_wire import clickhouse_write

from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.systems.clickhouse import client as clickhouse
from harness.transports.clickhouse.http_client import tuned
from tests.transports.clickhouse_table import DEFINITION, UUIDS, hostile_frame, wrong
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


def make(server: clickhouse_driver.Client, columns: str, rest: str = "ENGINE = Memory") -> None:
    server.execute(f"CREATE OR REPLACE TABLE odd ({columns}) {rest}")


@pytest.mark.parametrize("parted", ["PARTITION BY toYYYYMM(month)", "PARTITION BY month", "PARTITION BY word", ""])
def test_hostile_values_come_through_and_back(parted, server, call):
    make(server, DEFINITION, f"ENGINE = MergeTree {parted} ORDER BY place SETTINGS allow_nullable_key = 1")
    frame = hostile_frame()
    call("write_polars", frame, "odd")
    found = call("read_polars", "odd")
    assert found.schema == frame.schema
    assert wrong(frame, found) == []
    in_pandas = call("read_pandas", "odd")
    assert [str(in_pandas[name].dtype) for name in ("month", "te xt", "place")] == ["datetime64[us]", "str", "int32"]


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


NO_UUIDS = ("", "x" * 36, "01234567-89ab-cdef-fedc-ba987654321", "01234567089ab-cdef-fedc-ba9876543210")


@pytest.mark.parametrize(
    ("column", "frame", "said"),
    [
        *(("UUID", pl.DataFrame({"c": [UUIDS[2], key]}), "row 1: .* is not a UUID") for key in NO_UUIDS),
        ("Date", pl.DataFrame({"c": [datetime.date(1969, 12, 31)]}), "row 0: .* does not fit Date"),
        (
            "Date",
            pd.DataFrame({"c": pd.to_datetime(["2025-01-01 00:00:01"])}),
            "row 0: Date does not hold .* exactly",
        ),
    ],
)
def test_a_value_that_its_column_does_not_hold_fails_and_is_named(server, call, column, frame, said):
    make(server, f"c {column}")
    with pytest.raises(ValueError, match=f'column "c": {said}'):
        call("write_polars" if isinstance(frame, pl.DataFrame) else "write_pandas", frame, "odd")


@pytest.mark.parametrize("engine", ["MergeTree PARTITION BY n ORDER BY n", "Memory", "Log"])
def test_a_value_that_fails_late_leaves_nothing(server, call, monkeypatch, engine):
    monkeypatch.setattr(clickhouse_write, "SLICE_ROWS", 1_000)
    make(server, "n UInt8, d Date", f"ENGINE = {engine}")
    server.execute("INSERT INTO odd VALUES (1, '2025-01-01')")
    days = [datetime.date(2025, 1, 1)] * 20_000 + [datetime.date(1969, 1, 1)]
    with pytest.raises(ValueError, match=r'column "d": row \d+: .* does not fit Date'):
        call("write_polars", pl.DataFrame({"n": [number % 7 for number in range(20_001)], "d": days}), "odd")
    assert server.execute("SELECT n FROM odd") == [(1,)]
    left = "SELECT name FROM system.tables WHERE database = currentDatabase() AND name LIKE '%staging%'"
    assert server.execute(left) == []
    call("write_polars", pl.DataFrame({"n": [2], "d": days[:1]}), "odd")  # a successful write adds its rows
    assert sorted(server.execute("SELECT n FROM odd")) == [(1,), (2,)]


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


@pytest.mark.parametrize("text", ["unhex('ff')", "unhex('6162636465666768696a6b6c6d6e6f70c3')"])
def test_a_string_that_is_no_utf_8_is_refused(server, call, text):
    server.execute(f"CREATE OR REPLACE VIEW bytes AS SELECT {text} AS s")
    with pytest.raises(Exception, match=r"(?i)utf-?8"):
        call("read_polars", "bytes")
