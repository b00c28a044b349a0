"""Writes into ClickHouse beyond the published ones: they preserve hostile values, and name those they refuse."""

import datetime
import math
import struct
from collections.abc import Iterator

import clickhouse_driver
import pandas as pd
import polars as pl
import pytest

from harness import registry
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import Origin, Transport
from tests.calls import called, uri_of

WRITES = [entry for entry in registry.select("clickhouse.*.write_*") if entry.origin is Origin.BEYOND]
# Kinds of values in the table below; the docstring of a transport also names those that it is declared to lose.
LOST_HERE = {"nan", "nulls", "empty_text", "backslash_n", "tab", "spaces", "nul_character", "int64_beside_null"}
IMPOSSIBLE = [
    entry
    for entry in WRITES
    if entry.settings["async_insert"] == "1" or entry.function.__name__ == "write_pandas_insert_dataframe"
]
LOSSLESS = [
    entry for entry in WRITES if not LOST_HERE & entry.lossy.keys() and entry not in IMPOSSIBLE and not entry.needs
]
LENGTHS = (127, 128, 16_383, 16_384)  # where a length takes one byte more in Native and RowBinary
TEXTS = [
    "", None, r"\N", "NULL", "NA", "nan", "null", "a\tb", "a\nb", "a\rb", "x\r\ny", 'a"b', '"', "'q'", "a\\b", "\\",
    "\\t", "a,b", "a;b", "%s", " lead", "trail ", "😀ä", "nul\0nul", *("x" * length for length in LENGTHS),
]  # fmt: skip
FLOATS = [None, math.nan, math.inf, -math.inf, -0.0, 5e-324, 1e-310, 0.1, 1.7976931348623157e308, 123.45678901234567]
UUIDS = [None, "00000000-0000-0000-0000-000000000000", "0fdecbA9-8765-4321-0123-456789abcdef"]
DATES = [None, datetime.date(1970, 1, 1), datetime.date(2149, 6, 6)]
INTEGERS = [None, -(2**31), 2**31 - 1, 0]
TABLE = "hostile values"
DATABASE = f"{namespace()}_hostile"


def repeated(values: list, dtype: pl.DataType) -> pl.Series:
    return pl.Series([values[number % len(values)] for number in range(len(TEXTS))], dtype=dtype)


def polars_frame() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "place": repeated(list(range(len(TEXTS))), pl.Int32),
            "key": repeated(UUIDS, pl.String),
            "day": repeated(DATES, pl.Date),
            "number": repeated(INTEGERS, pl.Int32),
            "text": repeated(TEXTS, pl.String),
            "value": repeated(FLOATS, pl.Float64),
        }
    )


def pandas_frame() -> pd.DataFrame:
    """The same rows; a missing value among NumPy's floats is a NaN, there is nothing else for it."""
    frame = polars_frame()
    columns = {name: pd.Series(frame[name].to_list(), dtype="str") for name in ("key", "text")}
    columns |= {"place": frame["place"].to_pandas(), "number": pd.Series(frame["number"].to_list(), dtype="Int32")}
    columns["day"] = pd.Series(frame["day"].to_list(), dtype="datetime64[us]")
    columns["value"] = frame["value"].fill_null(math.nan).to_pandas()
    return pd.DataFrame({name: columns[name] for name in frame.columns})


def bits(value: object) -> object:
    """Return a value so that equal means identical: a float by its bytes, a UUID by its text."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    return value if value is None or isinstance(value, int | datetime.date) else str(value)


def expected(entry: Transport) -> list[tuple]:
    frame = polars_frame().with_columns(pl.col("key").str.to_lowercase())
    if entry.frame == "pandas":
        frame = frame.with_columns(pl.col("value").fill_null(math.nan))
    return [tuple(map(bits, row)) for row in frame.rows()]


@pytest.fixture(scope="module")
def reference(embedded_lab: EmbeddedLab) -> Iterator[clickhouse_driver.Client]:
    client = clickhouse_driver.Client.from_url(embedded_lab.endpoints["clickhouse_native"])
    with client:
        client.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        columns = (
            "place Int32, key Nullable(UUID), day Nullable(Date), number Nullable(Int32), text Nullable(String), "
            "value Nullable(Float64)"
        )
        target = f"{DATABASE}.`{TABLE}`"
        client.execute(f"CREATE OR REPLACE TABLE {target} ({columns}) ENGINE = MergeTree ORDER BY place")
        yield client
        client.execute(f"DROP DATABASE {DATABASE}")


def write(entry: Transport, lab: EmbeddedLab, frame: pl.DataFrame | pd.DataFrame, table: str = TABLE) -> None:
    called(entry, uri_of(entry, lab).replace(namespace(), DATABASE), frame, table)


@pytest.mark.long
@pytest.mark.parametrize("entry", LOSSLESS, ids=lambda entry: entry.id)
def test_hostile_values_come_through(
    entry: Transport, embedded_lab: EmbeddedLab, reference: clickhouse_driver.Client
) -> None:
    target = f"{DATABASE}.`{TABLE}`"
    reference.execute(f"TRUNCATE TABLE {target}")
    frame = pandas_frame() if entry.frame == "pandas" else polars_frame()
    before = frame.copy() if entry.frame == "pandas" else frame.clone()
    write(entry, embedded_lab, frame)
    found = [tuple(map(bits, row)) for row in reference.execute(f"SELECT * FROM {target} ORDER BY place")]
    assert found == expected(entry)
    assert frame.equals(before), "the caller's frame was changed"


@pytest.mark.parametrize("entry", IMPOSSIBLE, ids=lambda entry: entry.id)
def test_what_cannot_be_done_here_is_said_to_be_unsupported(
    entry: Transport, embedded_lab: EmbeddedLab, reference: clickhouse_driver.Client
) -> None:
    frame = pl.DataFrame({"place": [1], "key": [UUIDS[1]]}, schema={"place": pl.Int32, "key": pl.String})
    with pytest.raises(registry.Unsupported):
        write(entry, embedded_lab, frame.to_pandas() if entry.frame == "pandas" else frame)


@pytest.mark.parametrize("name", ["write_polars_native", "write_polars_row_binary"])
def test_an_own_encoder_refuses_what_it_cannot_encode(
    name: str, embedded_lab: EmbeddedLab, reference: clickhouse_driver.Client
) -> None:
    entry = registry.one(f"clickhouse.httpx.{name}")
    reference.execute(f"CREATE OR REPLACE TABLE {DATABASE}.odd (a Int8, b Array(Int8)) ENGINE = Memory")
    for frame, error in (
        (pl.DataFrame({"b": [[1]]}), registry.Unsupported),
        (pl.DataFrame({"a": [1_000]}), Exception),
        (pl.DataFrame({"a": [None, 1]}), Exception),
    ):
        with pytest.raises(error):
            write(entry, embedded_lab, frame, "odd")
    assert reference.execute(f"SELECT count() FROM {DATABASE}.odd") == [(0,)]
