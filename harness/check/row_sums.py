"""Order-independent sums of Parquet rows: counts and sums of hashes, through a chosen reader.

Two sets of rows with the same sums count as equal: the hashes have 64 bits. The reader is never the engine that wrote
the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.check.logical_types import Dtype
from harness.model import Scalar

_ROWS = "all columns together"


@dataclass(frozen=True)
class RowSums:
    """The number of rows, and per column (and over whole rows) the sum of its values' hashes, modulo 2**64."""

    rows: int
    sums: dict[str, int]


def by_duckdb(files: Sequence[str], sql_types: dict[str, str], marker: str) -> RowSums:
    """Read with DuckDB. `sql_types` are the columns' types; of `filename` only the part after `marker` counts."""
    import duckdb

    values = {name: f"CAST({name} AS {sql_type})" for name, sql_type in sql_types.items()}
    values["filename"] = "list_last(string_split(filename, $marker))"
    sums = ", ".join(f"sum(hash({value}))" for value in (*values.values(), ", ".join(values.values())))
    with duckdb.connect() as connection:
        query = f"SELECT count(*), {sums} FROM read_parquet($files, union_by_name = true)"
        found = connection.execute(query, {"files": list(files), "marker": marker}).fetchone()
    assert found is not None
    return _as_sums(values, found)


_POLARS = {"BIGINT": "Int64", "INTEGER": "Int32", "DOUBLE": "Float64", "VARCHAR": "String"}


def by_polars(files: Sequence[str], sql_types: dict[str, str], marker: str) -> RowSums:
    """Read with Polars; see `by_duckdb`."""
    import polars as pl

    types: dict[str, Dtype] = {name: getattr(pl, dtype) for name, dtype in _POLARS.items()}
    types["TIMESTAMP"] = pl.Datetime("us")
    values = [pl.col(name).cast(types[sql_type]) for name, sql_type in sql_types.items() if name != "filename"]
    if "filename" in sql_types:
        values.append(pl.col("filename").cast(pl.String).str.split(marker).list.last())
    hashes = [value.hash(seed=1).sum().alias(value.meta.output_name()) for value in values]
    whole = pl.struct(values).hash(seed=1).sum().alias(_ROWS)
    found = pl.scan_parquet(list(files)).select(pl.len().alias("rows"), *hashes, whole).collect(engine="streaming")
    names = [value.meta.output_name() for value in values]
    return _as_sums(names, found.row(0))


def _as_sums(names: Iterable[str], found: Sequence[Scalar]) -> RowSums:
    return RowSums(found[0], dict(zip((*names, _ROWS), (int(value or 0) % 2**64 for value in found[1:]), strict=True)))


def differences(expected: RowSums, found: RowSums) -> list[str]:
    """Return the differences, one line a column, whole rows last; an empty list means that all rows are equal."""
    if expected.rows != found.rows:
        return [f"expected {expected.rows} rows, found {found.rows}"]
    return [f"{name}: other values than expected" for name, value in expected.sums.items() if found.sums[name] != value]


Reader = Callable[[Sequence[str], dict[str, str], str], RowSums]
