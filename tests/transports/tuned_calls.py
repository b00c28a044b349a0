"""Shared by tests of the tuned transports: a separate database in ClickHouse, and each of the writes."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import clickhouse_driver
import polars as pl
import pytest
from arrow_wire import postgres_read, postgres_write

from harness.lab.embedded import EmbeddedLab
from harness.model import Transport

WRITES = ("write_polars", "write_pandas", "load")


def frame_of(rows: int) -> pl.DataFrame:
    """Return rows of a number, which tells them apart, and of a string of 60 characters."""
    return pl.DataFrame({"number": pl.Series(range(rows), dtype=pl.Int32), "text": [f"{n:>60}" for n in range(rows)]})


@contextmanager
def own_database(lab: EmbeddedLab, name: str) -> Iterator[clickhouse_driver.Client]:
    """Yield a native connection to a new database of ClickHouse, which ends with the block."""
    with clickhouse_driver.Client.from_url(lab.endpoints["clickhouse_native"]) as client:
        client.execute(f"CREATE DATABASE {name}")
        client.execute(f"USE {name}")
        yield client
        client.execute(f"DROP DATABASE {name}")


def writing(name: str, module: ModuleType, connection: Any, table: str, folder: Path) -> Callable[[pl.DataFrame], None]:
    """Return one of the writes of a module, given a polars frame; a load gets it as a file of the folder."""

    def call(frame: pl.DataFrame) -> None:
        given: Any = frame.to_pandas() if name == "write_pandas" else frame
        if name == "load":
            given = folder / "rows.parquet"
            frame.write_parquet(given)
        getattr(module, f"{name}_tuned")(connection, given, table)

    return call


def hurried(monkeypatch: pytest.MonkeyPatch, entry: Transport) -> None:
    """Have a transport, or its library, wait for a lock only for a short time."""
    for module in (inspect.getmodule(entry.function), postgres_read, postgres_write):
        if hasattr(module, "LOCK_TIMEOUT"):
            monkeypatch.setattr(module, "LOCK_TIMEOUT", "100ms")
