"""A frame in memory as a polars frame: from pandas, polars, or any library that exports Arrow columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa

from harness.check.logical_types import PER_SECOND
from harness.datasets.user_data import arrow_types, compared, nested
from harness.datasets.user_data.arrow_frames import OF_POLARS, of_arrow, quietly
from harness.datasets.user_data.columnar import require_different
from harness.model import Frame, LabError, Scalar, first_line

_OF_ARROW = ArithmeticError, TypeError, ValueError, NotImplementedError  # Arrow's exceptions for values without a type
_CHANGED_BY_DUCKDB = {"time with time zone", "bit", "bignum", "uhugeint", "variant"}
_OF_VALUES = re.compile("decimal|precision|time|range", re.IGNORECASE)  # in Arrow's words for invalid values
_INFINITE: dict[object, int] = {pl.Int64: 2**63 - 1, pl.Int32: 2**31 - 1}
_TAKEN = (
    "a DataFrame of pandas or polars, a LazyFrame, a Table or RecordBatchReader of pyarrow, or a relation of DuckDB"
)


def of_memory(data: Frame) -> pl.DataFrame:
    """Return a frame in memory as a polars frame. Raises LabError for other objects, or if a value would change."""
    library, name = type(data).__module__.partition(".")[0], type(data).__name__
    with quietly():
        if (library, name) == ("polars", "LazyFrame"):
            data = _collected(data)
        if isinstance(data, pl.DataFrame):
            return data
        if (library, name) == ("pandas", "DataFrame"):
            return _of_pandas(_with_index(data))
        if not hasattr(data, "__arrow_c_stream__"):
            raise LabError(f"{library}.{name} is not a frame; give {_TAKEN}")
        return _of_duckdb(data) if name == "DuckDBPyRelation" else _of_arrow(data)


def said(data: Frame, made: pl.DataFrame) -> str:
    """Describe how much of a frame was compared with its source; empty for a polars frame, which is not converted."""
    return "" if isinstance(data, pl.DataFrame | pl.LazyFrame) else compared.said(*made.shape)


def _collected(frame: Frame) -> pl.DataFrame:
    try:
        return frame.collect()
    except (*OF_POLARS, OSError) as error:
        raise LabError(f"the LazyFrame cannot be collected: {first_line(error)}") from None


def _of_duckdb(data: Frame) -> pl.DataFrame:
    import duckdb

    try:
        return _of_relation(data)
    except duckdb.Error as error:
        raise LabError(f"the relation cannot be read: {first_line(error)}") from None


def _of_relation(data: Frame) -> pl.DataFrame:
    """Return a relation of DuckDB, whose Arrow has other values for some types, and numbers for infinite times."""
    for name, of in zip(data.columns, data.types, strict=True):
        if odd := next((part for part in _types(of) if part.id in _CHANGED_BY_DUCKDB), None):
            raise LabError(f'column "{name}": DuckDB has no {odd} in Arrow, but another value; cast it to VARCHAR')
    frame = _of_arrow(data)
    for column in frame:
        for level in nested.leaves(column):
            if level["value"].dtype in (pl.Date, pl.Datetime):
                numbers = level["value"].to_physical()
                if len(rows := level["row"].filter(numbers.abs().eq(_INFINITE[numbers.dtype]))):
                    raise LabError(
                        f'column "{column.name}", row {rows[0]}: an infinite date or timestamp, which a frame does not '
                        "have; make it null"
                    )
    return frame


def _types(of: Frame) -> Iterator[Frame]:
    """Yield a type of DuckDB and those in it, at any depth."""
    yield of
    if of.id in ("list", "array", "struct", "map", "union"):
        for _, part in of.children:
            if hasattr(part, "id"):  # the size of an array is a number
                yield from _types(part)


def _of_arrow(data: Frame) -> pl.DataFrame:
    try:
        table = data if isinstance(data, pa.Table) else pa.RecordBatchReader.from_stream(data).read_all()
        require_different(table.column_names, "the frame")
        _require_readable(table)
        frame = of_arrow(table)
        compared.require_frame(frame, table, "the frame")
        return frame
    except (*OF_POLARS, *_OF_ARROW) as error:
        raise _not_taken("", error) from None
    except (OSError, RuntimeError) as error:  # of the source of a stream
        raise LabError(f"the frame cannot be read: {first_line(error)}") from None


def _require_readable(table: pa.Table) -> None:
    """Raise LabError for a column without a name, or with offsets that lie or strings that are not UTF-8."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not name:
            raise LabError("a column has no name; name it")
        try:
            column.validate(full=_has_offsets(column.type))
        except pa.ArrowInvalid as error:
            if not _OF_VALUES.search(str(error)):  # which are checked later
                raise LabError(f'column "{name}": {first_line(error)}; rebuild it') from None


def _has_offsets(of: pa.DataType) -> bool:
    return not all(map(pa.types.is_primitive, arrow_types.parts(of)))


def _not_taken(which: str, error: BaseException) -> LabError:
    reason = first_line(error.args[0] if len(error.args) == 2 else error)
    reason = reason.encode(errors="backslashreplace").decode()  # including half a surrogate pair
    return LabError(f"{which}no type of Arrow holds all these values ({reason}); cast them, or make them strings")


def _with_index(frame: Frame) -> Frame:
    """Return a pandas frame with the named parts of its index as columns. Raises LabError for values in other parts."""
    names = list(frame.index.names)
    if len(names) == 1 and names[0] is None:
        if frame.index.dtype.kind in "iu":
            return frame  # row numbers
        raise LabError(
            f"the index has no name and holds values ({frame.index.dtype}): name it to keep it as a column "
            '(frame.rename_axis("name")), or drop it (frame.reset_index(drop=True))'
        )
    if None in names:
        raise LabError(
            "a part of the index has no name: name all of them (frame.rename_axis), or frame.reset_index(drop=True)"
        )
    if twice := [name for name in names if name in frame.columns]:
        raise LabError(
            f'the index "{twice[0]}" and a column have the same name: rename one (frame.rename_axis), '
            "or drop the index (frame.reset_index(drop=True))"
        )
    kept = frame.reset_index(drop=True)
    for place, name in enumerate(names):  # reset_index() itself turns objects that are integers and None into floats
        kept.insert(place, name, frame.index.get_level_values(place).to_series(index=kept.index))
    return kept


def _of_pandas(frame: Frame) -> pl.DataFrame:
    require_different(list(map(str, frame.columns)), "the frame")
    try:
        named = frame.set_axis(list(map(str, frame.columns)), axis="columns")
        made = of_arrow(_table(_with_unsigned(named)))
        _require_same(made, named)
        return made
    except (*OF_POLARS, *_OF_ARROW) as error:
        raise _not_taken(_not_of_arrow(frame), error) from None


def _with_unsigned(named: Frame) -> Frame:
    """Return a pandas frame with objects beyond int64 as uint64, because Arrow takes objects for int64."""
    import pandas as pd

    found = {}
    for name, values in named.items():
        if values.dtype == object and pd.api.types.infer_dtype(values) == "integer":
            numbers = values.dropna()
            if numbers.min() >= 0 and 1 << 63 <= numbers.max() < 1 << 64:
                array = pa.array(values, pa.uint64(), from_pandas=True)
                found[name] = pd.Series(pd.array(array, pd.ArrowDtype(pa.uint64())), values.index)
    return named.assign(**found) if found else named


def _table(named: Frame) -> pa.Table:
    """Return a pandas frame as an Arrow table. Raises LabError if that would change objects of mixed types."""
    zoned = {name: one.dt.tz_convert("UTC") for name, one in named.items() if hasattr(one.dtype, "tz")}
    table = pa.Table.from_pandas(named.assign(**zoned) if zoned else named, preserve_index=False)
    for field in table.schema:
        objects = named[field.name] if named[field.name].dtype == object else ()
        if pa.types.is_date32(field.type) and any(isinstance(one, datetime) for one in objects):
            raise LabError(f'column "{field.name}": dates and timestamps are mixed; make all of them timestamps')
        if pa.types.is_binary(field.type) and any(isinstance(one, str) for one in objects):
            raise LabError(f'column "{field.name}": bytes and strings are mixed; make all of them strings')
        if pa.types.is_floating(field.type) and any(isinstance(one, bool) for one in objects):
            raise LabError(f'column "{field.name}": numbers and Booleans are mixed; make all of them one type')
        if any(map(pa.types.is_timestamp, arrow_types.parts(field.type))):
            _require_aware_or_naive(field.name, objects)
    return table


def _require_aware_or_naive(name: str, objects: Frame) -> None:
    """Raise LabError if only some timestamps have a zone."""
    first = None
    for row, zoned in ((row, at.tzinfo is not None) for row, one in enumerate(objects) for at in _timestamps(one)):
        first = zoned if first is None else first
        if zoned == first:
            continue
        raise LabError(
            f'column "{name}", row {row}: timestamps with a time zone and without one in one column; give all '
            "of them a zone (tz_localize), or none"
        )


def _timestamps(value: Scalar) -> Iterator[datetime]:
    """Yield the timestamps in an object, at any depth."""
    if isinstance(value, datetime) and value == value:
        yield value
    elif isinstance(value, list | tuple | dict | set | np.ndarray):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _timestamps(one)


def _not_of_arrow(frame: Frame) -> str:
    """Name the first column of a pandas frame that has no Arrow type."""
    for place, name in enumerate(map(str, frame.columns)):
        try:
            pa.array(frame.iloc[:, place], from_pandas=True)
        except _OF_ARROW:
            return f'column "{name}": '
    return ""


def _require_same(made: pl.DataFrame, frame: Frame) -> None:
    """Raise LabError with the column and row of a value that differs from the pandas frame's."""
    for first, size in compared.pieces(*made.shape):
        for name in made.columns:
            column, piece = made[name].slice(first, size), frame[name].iloc[first : first + size]
            if (row := _different(column, piece)) is not None:
                raise LabError(
                    f'column "{name}", row {first + row}: {_told(piece.iloc, row)} would become {_told(column, row)}; '
                    "cast the column to one type, or make it a string"
                )


def _told(values: Frame, row: int) -> str:
    try:
        return repr(str(values[row])[:40])
    except (*OF_POLARS, ArithmeticError, ValueError):
        return "a value that Python does not have"


def _different(column: pl.Series, piece: Frame) -> int | None:
    missing = piece.isna().to_numpy()
    if isinstance(column.dtype, pl.Datetime | pl.Duration) and piece.dtype.kind in "mM":
        given = piece.dt.tz_convert("UTC").dt.tz_localize(None) if hasattr(piece.dtype, "tz") else piece
        numbers = given.to_numpy().astype("int64")
        found = column.to_physical().fill_null(0).to_numpy()
        has, wanted = PER_SECOND[getattr(given.dt, "unit", "ns")], PER_SECOND[column.dtype.time_unit]
        coarse, fine = (numbers, found) if has < wanted else (found, numbers)
        whole, rest = np.divmod(fine, max(has, wanted) // min(has, wanted))  # a product may be beyond 64 bits
        changed = ((whole != coarse) | (rest != 0)) & ~missing
        changed |= column.is_null().to_numpy() != missing
        return int(np.flatnonzero(changed)[0]) if changed.any() else None
    values = column.ext.storage() if isinstance(column.dtype, pl.BaseExtension) else column
    pairs = enumerate(zip(values.to_list(), piece.tolist(), missing.tolist(), strict=True))
    return next((row for row, (one, other, no) in pairs if not _same(one, other, no)), None)


def _same(made: Scalar, given: Scalar, missing: Scalar) -> bool:
    if made is None or missing is True:
        return missing is True and (made is None or made != made)
    if isinstance(made, bool) or isinstance(given, bool):
        return isinstance(made, bool) and bool(made == given)
    if isinstance(made, int | float) and not isinstance(given, int | float | Decimal | np.generic):
        return False
    return _other_dtype(made, given) or compared.same(made, given)


def _other_dtype(made: Scalar, given: Scalar) -> bool:
    """Return whether a value that Python objects represent in another form is the same."""
    import uuid

    if isinstance(given, uuid.UUID):
        return bool(made == given.bytes) or str(made) == str(given)
    if isinstance(given, np.ndarray | list | tuple | set) and isinstance(made, list):
        given = list(given)
        return len(given) == len(made) and all(
            _same(one, other, other is None) for one, other in zip(made, given, strict=True)
        )
    if isinstance(given, dict) and isinstance(made, dict):
        return all(_same(value, given.get(name), given.get(name) is None) for name, value in made.items())
    if isinstance(given, Decimal) and isinstance(made, str | Decimal):
        return Decimal(made) == given
    if isinstance(given, datetime) and isinstance(made, datetime):
        return (made.tzinfo is None) == (given.tzinfo is None) and bool(made == given)
    return bool(given == made)
