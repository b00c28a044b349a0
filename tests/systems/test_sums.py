"""The client and the server compute the same sums of a table, and the sums show each change."""

import datetime as dt
import math
import random
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from harness.check import sums
from harness.check.logical_types import polars_dtype
from harness.lab.embedded import EmbeddedLab
from harness.model import LabError
from harness.systems import SYSTEMS

BOTH = pytest.mark.parametrize("system", sorted(name for name, of in SYSTEMS.items() if not of.lacks("sums")))
TABLE = "summed"
TYPES = {
    "postgres": {
        "boolean": "boolean",
        "int16": "smallint",
        "int32": "integer",
        "int64": "bigint",
        "float64": "double precision",
        "date": "date",
        "timestamp": "timestamp",
        "timestamp_tz": "timestamptz",
        "uuid": "uuid",
        "text": "text",
    },
    "clickhouse": {
        "boolean": "Bool",
        "int16": "Int16",
        "int32": "Int32",
        "int64": "Int64",
        "float64": "Float64",
        "date": "Date32",
        "timestamp": "DateTime64(6)",
        "timestamp_tz": "DateTime64(6, 'UTC')",
        "uuid": "UUID",
        "text": "String",
    },
}
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False, None],
    "int16": [0, -1, 2**15 - 1, -(2**15), None],
    "int32": [0, 1, -1, 2**31 - 1, -(2**31), None],
    "int64": [0, 1, -1, 2**63 - 1, -(2**63), None],
    "float64": [0.0, -0.0, 0.1, 1.7976931348623157e308, 5e-324, math.inf, -math.inf, math.nan, None],
    "date": [dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(2026, 11, 22), dt.date(1901, 2, 3), None],
    "timestamp": [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), None],
    "timestamp_tz": [dt.datetime(2026, 11, 22, 1, 2, 3, 4, tzinfo=dt.UTC), None],
    "uuid": [str(uuid.UUID(int=1)), str(uuid.UUID(int=2**128 - 1)), "0f8fad5b-d9cb-469f-a165-70867728950e", None],
    "text": ["", "a", "é😀", "\t\n\\N", "x" * 5_000, "NULL", None],
}
NAMES = {f'the "{logical}"': logical for logical in VALUES}  # names that need quotes
LOGICAL_TYPES = {"row": "int32", **NAMES}
ROWS = 1_000


def frame(rows: int = ROWS) -> pl.DataFrame:
    """Every value of every logical type, in rows of random values."""
    columns = [pl.Series("row", range(rows), pl.Int32)]
    for name, logical in NAMES.items():
        columns.append(pl.Series(name, random.Random(logical).choices(VALUES[logical], k=rows), polars_dtype(logical)))
    return pl.DataFrame(columns)


def definition(system: str) -> str:
    """Return CREATE TABLE of these columns."""
    types, quoted = TYPES[system], SYSTEMS[system].sql.identifier
    if system == "postgres":
        columns = ", ".join(f"{quoted(name)} {types[logical]}" for name, logical in LOGICAL_TYPES.items())
        return f"CREATE TABLE {{table}} ({columns})"
    columns = ", ".join(f"{quoted(name)} Nullable({types[logical]})" for name, logical in LOGICAL_TYPES.items())
    return f"CREATE TABLE {{table}} ({columns}) ENGINE = Memory"


Loaded = Callable[[pl.DataFrame], sums.Sums]


@pytest.fixture
def loaded(system: str, embedded_lab: EmbeddedLab, tmp_path: Path) -> Iterator[Loaded]:
    """Load a frame and return the sums that the server computes."""
    client = SYSTEMS[system].client
    connection = client.open_connection(embedded_lab.endpoints)
    client.ensure_namespace(connection)

    def of(rows: pl.DataFrame) -> sums.Sums:
        rows.write_parquet(tmp_path / "rows.parquet")
        client.create(connection, TABLE, definition(system))
        client.load(connection, TABLE, tmp_path / "rows.parquet", LOGICAL_TYPES)
        return SYSTEMS[system].sums.sums(connection, TABLE, LOGICAL_TYPES)

    yield of
    client.drop(connection, TABLE)


def here(rows: pl.DataFrame) -> sums.Sums:
    """Return the sums that this process computes."""
    return sums.of_table(rows.to_arrow(), LOGICAL_TYPES)


@BOTH
def test_server_and_client_compute_the_same_of_every_logical_type_in_any_order(system: str, loaded: Loaded) -> None:
    expected = here(frame())
    assert loaded(frame().sample(fraction=1, shuffle=True, seed=1)) == expected
    assert expected.rows == ROWS
    assert all(expected.columns.values())
    assert min(count for name, count in expected.nulls.items() if name != "row") > 0


@BOTH
def test_no_rows_have_sums_too(system: str, loaded: Loaded) -> None:
    assert (
        loaded(frame(0))
        == here(frame(0))
        == sums.Sums(0, dict.fromkeys(LOGICAL_TYPES, 0), dict.fromkeys(LOGICAL_TYPES, 0), 0)
    )


def flipped(rows: pl.DataFrame) -> pl.DataFrame:
    """One bit of one number is another one."""
    return rows.with_columns(row=pl.when(pl.col("row") == 77).then(pl.col("row") ^ 1024).otherwise(pl.col("row")))


def swapped(rows: pl.DataFrame) -> pl.DataFrame:
    """Two values of a column have changed places."""
    row = rows["row"].to_list()
    row[3], row[4] = row[4], row[3]
    return rows.with_columns(row=pl.Series(row, dtype=pl.Int32))


def nulled(rows: pl.DataFrame) -> pl.DataFrame:
    """An empty text is a null."""
    first = rows.with_row_index("n").filter(pl.col('the "text"') == "")["n"][0]
    return rows.with_columns(
        pl.when(pl.int_range(pl.len()) == first).then(None).otherwise(pl.col('the "text"')).alias('the "text"')
    )


NULLS = frame()['the "text"'].null_count()
CHANGES: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "a bit": (flipped, "row: other values than expected"),
    "two values swapped": (swapped, "values are in other rows than expected"),
    "an empty text nulled": (nulled, f'the "text": expected {NULLS} nulls, found {NULLS + 1}'),
    "a row twice": (lambda rows: pl.concat([rows, rows[5:6]]), "expected 1000 rows, found 1001"),
    "a row dropped": (lambda rows: rows[:-1], "expected 1000 rows, found 999"),
    "a row in place of another": (lambda rows: pl.concat([rows[1:], rows[5:6]]), "row: other values than expected"),
}


@BOTH
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_and_named(system: str, loaded: Loaded, change: str) -> None:
    changed, said = CHANGES[change]
    expected = here(frame())
    assert said in sums.differences(expected, loaded(changed(frame())))
    assert sums.differences(expected, expected) == []


def test_sums_of_parts_add_up_whatever_the_parts() -> None:
    rows = frame()
    parts = [here(part) for part in rows.iter_slices(333)]
    assert len(parts) == 4
    assert sum(parts[1:], parts[0]) == here(rows)


def test_without_sums_of_columns_whole_rows_tell() -> None:
    expected = here(frame())
    found = sums.Sums(expected.rows, expected.nulls, {}, expected.whole + 1)
    assert sums.differences(expected, found) == ["other values than expected"]
    assert sums.differences(expected, sums.Sums(expected.rows, expected.nulls, {}, expected.whole)) == []


def test_a_logical_type_without_canonical_bytes_is_refused_by_name() -> None:
    with pytest.raises(LabError, match='column "prices": no sums of decimal'):
        sums.require({"a": "int32", "prices": "decimal(12, 2)"})
