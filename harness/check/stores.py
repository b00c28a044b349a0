"""Stores on disk, read for verification by a library other than the writer's if one exists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def fetch(client: str, folder: Path, columns: list[str]) -> pa.Table:
    """Return these columns of the store that `client` made in a folder. Raises KeyError for other clients.

    DuckDB reads stores of Parquet files, and ADBC reads SQLite. Only DuckDB and Lance themselves can read a DuckDB file
    and a Lance dataset.
    """
    return _READERS[client](folder, columns)


def _parquet_files(folder: Path, columns: list[str]) -> pa.Table:
    import duckdb

    files = sorted(str(path) for path in folder.rglob("*.parquet"))
    with duckdb.connect() as connection:
        relation = connection.read_parquet(files)
        return relation.select(*map(duckdb.ColumnExpression, columns)).to_arrow_table()


def _sqlite(folder: Path, columns: list[str]) -> pa.Table:
    import adbc_driver_sqlite.dbapi

    with (
        adbc_driver_sqlite.dbapi.connect(str(_only(folder, "*.sqlite"))) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"SELECT {', '.join(columns)} FROM {_TABLE}")
        return cursor.fetch_arrow_table()


def _duckdb(folder: Path, columns: list[str]) -> pa.Table:
    import duckdb

    with duckdb.connect(str(_only(folder, "*.duckdb")), read_only=True) as connection:
        return connection.table(_TABLE).select(*map(duckdb.ColumnExpression, columns)).to_arrow_table()


def _lance(folder: Path, columns: list[str]) -> pa.Table:
    import lance

    return lance.dataset(str(_only(folder, "*.lance"))).to_table(columns=columns)


def _only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    if len(found) != 1:
        raise FileNotFoundError(f"{len(found)} files in {folder.name} match {pattern}; a store has one")
    return found[0]


_TABLE = "benchmark"  # the published benchmark's table name
_READERS: dict[str, Callable[[Path, list[str]], pa.Table]] = {
    **dict.fromkeys(("parquetdb", "pyarrow", "polars", "delta"), _parquet_files),
    "sqlite": _sqlite,
    "duckdb": _duckdb,
    "lance": _lance,
}
