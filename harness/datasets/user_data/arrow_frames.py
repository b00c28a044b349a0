"""Arrow tables as polars frames, without polars' panics and without changed values."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import polars as pl
import pyarrow as pa

from harness.datasets.user_data import arrow_types
from harness.model import LabError

OF_POLARS = pl.exceptions.PolarsError, pl.exceptions.PanicException


def of_arrow(table: pa.Table) -> pl.DataFrame:
    """Return an Arrow table as a frame. Raises LabError with a column that polars cannot hold."""
    arrow_types.require_known(table.schema)
    require_zones(table.schema)
    arrow_types.require_times(table)
    arrow_types.require_digits(table)
    return with_uuids(pl.DataFrame(pl.from_arrow(_in_utc(arrow_types.narrowed(table)))), table.schema)


def require_zones(schema: pa.Schema) -> None:
    """Raise LabError with a column whose time zone polars does not know."""
    for field in schema:
        for part in arrow_types.parts(field.type):
            zone = getattr(part, "tz", None)
            if zone is None or arrow_types.is_offset(zone):
                continue
            try:
                pl.Series([0]).cast(pl.Datetime("us", zone))
            except OF_POLARS:
                raise LabError(f'column "{field.name}": the time zone "{zone}" is unknown; cast it to UTC') from None


def _in_utc(table: pa.Table) -> pa.Table:
    """Return an Arrow table with offset zones converted to UTC, because polars knows zones only by name."""
    if not (offsets := arrow_types.columns(table.schema, arrow_types.has_offset)):
        return table
    utc = [one.with_type(pa.timestamp(one.type.unit, "UTC")) if one.name in offsets else one for one in table.schema]
    return table.cast(pa.schema(utc))


def with_uuids(frame: pl.DataFrame, schema: pa.Schema) -> pl.DataFrame:
    """Return a frame in which an Arrow schema's UUIDs keep their type: polars treats them as bytes."""
    known = [frame[name] for name in arrow_types.columns(schema, arrow_types.of_uuids)]
    made = [one.ext.to(pl.Extension("arrow.uuid", one.dtype)) for one in known]
    return frame.with_columns(made) if made else frame


@contextmanager
def quietly() -> Iterator[None]:
    """Keep Rust's panic message off the screen, because the exception has it; other output appears afterwards."""
    with tempfile.TemporaryFile() as said:
        sys.stderr.flush()
        screen = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield
        finally:
            with suppress(OSError, ValueError):
                sys.stderr.flush()
            os.dup2(screen, 2)
            os.close(screen)
            said.seek(0)
            rest = said.read()
            if rest and b"panicked at" not in rest:
                with suppress(OSError):
                    os.write(2, rest)
