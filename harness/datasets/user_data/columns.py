"""The columns of a user's frame as logical types, and the frame in their canonical form.

| in the frame | logical type |
|---|---|
| Boolean; Int8 to Int64; UInt8 to UInt64; Float32, Float64 | `boolean`; `int8` ...; `uint8` ...; `float32`, `float64` |
| String, or only nulls | `text` |
| Categorical, Enum, dictionary | `category` |
| Arrow's extension type for UUIDs, alone and in lists | `uuid`, `array(uuid)` |
| Date; Time; timestamps without a zone | `date`; `time`; `timestamp`, in microseconds |
| timestamps with a zone | `timestamp_tz`, in UTC |
| timestamps that microseconds cannot represent | `timestamp_ns`, `timestamp_tz_ns` |
| Duration | `duration`, in microseconds |
| Decimal(p, s); Arrow and Postgres decimals with up to 76 digits | `decimal(p, s)` |
| lists of one of these, to any depth | `array(...)`, `array(array(...))` |
| structs of such types | `nested({"name": "...", ...})` |
| maps to such types, with keys other than lists, structs, maps or bytes | `map(["...", "..."])` |
| binary | `binary` |

In lists, structs and maps a category is a string. Durations are refused there, and so are all other types, because no
database table holds them. A database's tables refuse types that it lacks.
"""

from __future__ import annotations

import polars as pl

from harness.check.canonical import canonicalise, decimal_text
from harness.check.logical_types import (
    FLOATS,
    INTEGERS,
    MOST_DIGITS,
    Dtype,
    is_wide,
    map_of,
    nested,
    plain,
    polars_dtype,
)
from harness.datasets.user_data import nested as inside
from harness.model import LabError, first_line

_NAMED: dict[Dtype, str] = {
    pl.Boolean: "boolean",
    pl.Int8: "int8",
    pl.Int16: "int16",
    pl.Int32: "int32",
    pl.Int64: "int64",
    pl.UInt8: "uint8",
    pl.UInt16: "uint16",
    pl.UInt32: "uint32",
    pl.UInt64: "uint64",
    pl.Float16: "float32",  # which holds all its values
    pl.Float32: "float32",
    pl.Float64: "float64",
    pl.String: "text",
    pl.Null: "text",
    pl.Categorical: "category",
    pl.Enum: "category",
    pl.Date: "date",
    pl.Time: "time",
    pl.Duration: "duration",
    pl.Binary: "binary",
}
_IN_NESTED = {*INTEGERS, *FLOATS, "boolean", "text", "date", "timestamp", "timestamp_tz"}
_KEYS = _IN_NESTED | {"decimal", "time"}
_IN_NESTED |= {"decimal", "time", "binary", "array", "nested", "map"}
_MOST = 76  # maximum digits of decimals in Arrow and ClickHouse
_NUMBER = r"^-?\d+(\.\d+)?$"
_INSTEAD = {
    pl.Struct: "unnest it into columns, cast its fields, or make it a string",
    pl.Object: "make it a string",
    pl.List: "make it a string",
}


def canonical(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, str]]:
    """Return a frame in canonical form, and its columns' logical types. Raises LabError for a column without one."""
    if not frame.width:
        raise LabError("the data has no columns")
    if not frame.height:
        raise LabError("the data has no rows: there is nothing to measure")
    if "" in frame.columns:
        raise LabError("a column has no name; name it")
    if odd := [name for name in frame.columns if "\0" in name]:
        raise LabError(f"column {odd[0]!r}: no database takes U+0000 in a name; rename the column")
    plain = [_plain(series) for series in frame]
    logical_types = {series.name: _logical_type(series) for series in plain}
    return pl.DataFrame([_canonical(series, logical_types[series.name]) for series in plain]), logical_types


def _plain(series: pl.Series) -> pl.Series:
    """Return the content of an Arrow extension type, such as Postgres' numbers and documents; a UUID stays one.

    Numbers with more digits than polars supports keep that type.
    """
    if not isinstance(series.dtype, pl.BaseExtension) or "uuid" in str(series.dtype).lower():
        return series
    stored = series.ext.storage()
    if "numeric" not in str(series.dtype) or stored.dtype != pl.String:
        return stored
    narrow = _narrow(stored)
    return series if narrow is None else narrow


def _logical_type(series: pl.Series) -> str:
    dtype = series.dtype
    if isinstance(dtype, pl.Datetime):
        finer = dtype.time_unit == "ns" and (series.to_physical() % 1_000 != 0).any()
        return f"{_of_flat(dtype)}_ns" if finer else _of_flat(dtype)
    if dtype == pl.Time and len(rows := (series.to_physical() % 1_000 != 0).arg_true()):
        raise LabError(
            f'column "{series.name}", row {rows[0]}: a time of day with nanoseconds, which no database here '
            "gives back: they count microseconds; round it, or make it a number or a string"
        )
    if (row := inside.not_counted(series)) is not None:
        raise LabError(
            f'column "{series.name}", row {row}: a timestamp in a list or struct has nanoseconds, or is out of range; '
            "round it or leave it out"
        )
    if (row := inside.repeated(series)) is not None:
        raise LabError(f'column "{series.name}", row {row}: a map has one key twice; remove one')
    if isinstance(dtype, pl.BaseExtension):
        stored = series.ext.storage()
        return _uuids(stored.dtype) if "uuid" in str(dtype).lower() else _decimal(stored)
    if logical := _of_nested(dtype) or _of_flat(dtype):
        return logical
    instead = next((said for of, said in _INSTEAD.items() if isinstance(dtype, of)), "leave it out or cast it")
    raise LabError(f'column "{series.name}": no table of a database holds {dtype}; {instead}')


def _uuids(dtype: Dtype) -> str:
    return f"array({_uuids(dtype.inner)})" if isinstance(dtype, pl.List) else "uuid"


def _of_flat(dtype: Dtype) -> str:
    """Return the logical type of a non-nested column; empty if no table holds it."""
    if isinstance(dtype, pl.Datetime):
        return "timestamp_tz" if dtype.time_zone else "timestamp"
    if isinstance(dtype, pl.Decimal):
        return f"decimal({dtype.precision or 38}, {dtype.scale})"
    return _NAMED.get(dtype.base_type(), "")


def _of_nested(dtype: Dtype) -> str:
    """Return the logical type of lists, structs and maps of any depth; empty for all other types."""
    if isinstance(dtype, pl.Struct):
        logical_types = {field.name: _inside(field.dtype) for field in dtype.fields}
        return nested(logical_types) if logical_types and all(logical_types) and all(logical_types.values()) else ""
    if isinstance(dtype, pl.Map):
        keys, values = _of_flat(dtype.key), _inside(dtype.value)
        keys = "text" if keys == "category" else keys
        return map_of(keys, values) if plain(keys) in _KEYS and values else ""
    of_items = _inside(dtype.inner) if isinstance(dtype, pl.List | pl.Array) else ""
    return of_items and f"array({of_items})"


def _inside(dtype: Dtype) -> str:
    """Return the logical type of a list's, struct's or map's items; empty if no table holds it there."""
    logical = _of_nested(dtype) or _of_flat(dtype)
    logical = "text" if logical == "category" else logical
    return logical if plain(logical) in _IN_NESTED else ""


def _canonical(series: pl.Series, logical: str) -> pl.Series:
    """Return a column in its canonical dtype. Raises LabError if that would change a value."""
    if is_wide(logical):
        return _normalized(series.ext.storage(), logical)
    if isinstance(series.dtype, pl.BaseExtension):  # UUIDs: no other extension type remains
        return canonicalise(series.ext.storage().to_frame(), {series.name: logical})[0].to_series()
    if isinstance(series.dtype, pl.Enum):
        series = series.cast(pl.String)
    counted = isinstance(series.dtype, pl.Datetime | pl.Duration) and series.dtype.time_unit != "us"
    try:
        made = series.cast(polars_dtype(logical), strict=not counted)
    except pl.exceptions.InvalidOperationError as error:  # keys of maps
        raise LabError(f'column "{series.name}": {first_line(error)}; cast it, or make it a string') from None
    if counted:
        _require_same(series, made)
    return made


def _require_same(series: pl.Series, made: pl.Series) -> None:
    """Raise LabError with the first row whose timestamp or duration microseconds cannot represent."""
    changed = made.cast(series.dtype).ne_missing(series).arg_true()
    if changed.is_empty():
        return
    what = "duration" if isinstance(series.dtype, pl.Duration) else "timestamp"
    finer = isinstance(series.dtype, pl.Datetime | pl.Duration) and series.dtype.time_unit == "ns"
    wrong = "has nanoseconds; round it to microseconds" if finer else "is out of range; leave it out"
    raise LabError(f'column "{series.name}", row {changed[0]}: a {what} {wrong}')


# Decimals that arrived as strings: polars decimals if 38 digits are enough, otherwise normalized strings.


def _narrow(strings: pl.Series) -> pl.Series | None:
    """Return decimals of 38 digits with all the strings' places; None if 38 digits are not enough."""
    scale = _places(strings)
    if scale > MOST_DIGITS:
        return None
    try:
        return strings.cast(pl.Decimal(MOST_DIGITS, scale), strict=True)
    except pl.exceptions.PolarsError:
        return None


def _decimal(strings: pl.Series) -> str:
    """Return the logical type of decimals with more digits. Raises LabError for invalid numbers and too many digits."""
    others = (~strings.str.contains(_NUMBER)).arg_true()
    if len(others):
        raise LabError(
            f'column "{strings.name}", row {others[0]}: a decimal is NaN or infinity; make it null, or drop the row'
        )
    scale = _places(strings)
    whole = strings.str.extract(r"^-?0*(\d*)").str.len_chars().max()
    precision = max(int(whole or 0) + scale, MOST_DIGITS + 1)  # type: ignore[arg-type]
    if precision > _MOST:
        raise LabError(
            f'column "{strings.name}": a decimal has {precision} digits, and at most {_MOST} fit; round it, or make it '
            "a string"
        )
    return f"decimal({precision}, {scale})"


def _normalized(strings: pl.Series, logical: str) -> pl.Series:
    """Return decimals of a logical type as strings; equal decimals have equal strings."""
    made = [text if text is None else decimal_text(text, logical) for text in strings.to_list()]
    return pl.Series(strings.name, made, pl.String)


def _places(strings: pl.Series) -> int:
    return int(strings.str.extract(r"\.(\d+)$").str.len_chars().max() or 0)  # type: ignore[arg-type]
