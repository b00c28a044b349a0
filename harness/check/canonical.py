"""The canonical frame of a dataset in pandas and polars, and the conversion of any returned frame to it.

Canonical dtypes are those that a careful user would pass. In polars: String for a UUID (polars has no UUID type), Date,
Int32, Int64, String, Float64. In pandas 3: `str`, `datetime64[us]` (pandas has no date dtype), int32, int64, `str`,
float64. pandas integers and booleans with nulls have nullable dtypes (Int32, Int64, boolean). A float64 column marks a
null with NaN. All conversions here happen outside the timed call.
"""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from decimal import Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from harness.check.logical_types import (
    FLOATS,
    INTEGERS,
    NANOSECONDS,
    OF_BENCHMARKS,
    Dtype,
    digits,
    fields,
    is_wide,
    items,
    mapped,
    pandas_dtype,
    plain,
    polars_dtype,
    polars_name,
)
from harness.model import Frame, Scalar, first_line

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


# polars columns of lists, structs or UUIDs that arrived in another form than the canonical one.

_GROUPS = r"^(\w{8})(\w{4})(\w{4})(\w{4})(\w{12})$", "$1-$2-$3-$4-$5"


def shape(dtype: Dtype) -> Dtype:
    """Return the nesting of lists, structs and maps in a dtype, whatever their items."""
    import polars as pl

    if isinstance(dtype, pl.Struct):
        return [(field.name, shape(field.dtype)) for field in dtype.fields]
    if isinstance(dtype, pl.Map):
        return {"key": shape(dtype.key), "value": shape(dtype.value)}
    return (shape(dtype.inner),) if isinstance(dtype, pl.List | pl.Array) else None


def entries_of(dtype: Dtype) -> Dtype:
    """Return the dtype of a map's entries."""
    import polars as pl

    return pl.List(pl.Struct({"key": dtype.key, "value": dtype.value}))


def without_items(series: pl.Series, logical: str) -> pl.Series:
    """Return lists with another shape if all are empty, so that nothing is lost. Raises ValueError otherwise.

    A cast would turn each item into a list, and each missing field into a null.
    """
    import polars as pl

    lists = series.to_list()
    if any(lists):
        raise ValueError("it is nested in another way")
    return pl.Series(series.name, lists, polars_dtype(logical))


def of_lists(series: pl.Series, logical: str) -> pl.Series | None:
    """Return lists of UUIDs that arrived as 16 bytes, and of bytes that arrived as strings; None for other columns.

    Raises ValueError for invalid UUIDs.
    """
    import polars as pl

    dtype, item = series.dtype, logical
    while isinstance(dtype, pl.List | pl.Array):
        dtype, item = dtype.inner, items(item)  # type: ignore[assignment]
    if item == "binary" and dtype == pl.String:  # they may not be UTF-8, which cannot be undone
        return series.cast(polars_dtype(logical))
    if item == "uuid" and dtype not in (pl.Binary, pl.String, pl.Null):
        raise ValueError(f"UUIDs came as {dtype}")
    if item == "uuid" and dtype == pl.Binary:
        return series.to_frame().select(_uuids_in(pl.first(), series.dtype)).to_series().alias(series.name)
    return None


def _uuids_in(values: pl.Expr, dtype: Dtype) -> pl.Expr:
    import polars as pl

    if isinstance(dtype, pl.List):
        return values.list.eval(_uuids_in(pl.element(), dtype.inner))
    return values.bin.encode("hex").str.replace(*_GROUPS)


def uuid_strings(series: pl.Series) -> pl.Series:
    """Turn 16-byte binary UUIDs (network byte order) into their 36-character strings."""
    import polars as pl

    storage = series.ext.storage() if isinstance(series.dtype, pl.BaseExtension) else series
    digits = storage.cast(pl.Binary).bin.encode("hex").alias("digits").to_frame()
    # Slices are five times as fast as a regular expression over a whole column.
    groups = (
        pl.col("digits").str.slice(start, length) for start, length in ((0, 8), (8, 4), (12, 4), (16, 4), (20, None))
    )
    return digits.select(pl.concat_str(groups, separator="-").alias(series.name)).to_series()


def with_dashes(strings: pl.Series) -> pl.Series:
    """Return UUIDs with dashes, also those that arrived without."""
    return strings.str.replace(*_GROUPS)


# Single values that arrived as Python objects or strings, as polars accepts them, for types that no benchmark has.

_EXACT = Context(prec=1_000)  # precision while a number is rounded to its scale
_BOOLEANS = {"t": True, "true": True, "f": False, "false": False, "1": True, "0": False}


def canonical_value(value: Scalar, logical: str) -> Scalar:
    """Return the value that polars accepts for one object or string of such a type. Raises ValueError, TypeError."""
    if logical in INTEGERS:
        return _integer(value)
    return _MADE[plain(logical)](value, logical)


def _integer(value: Scalar) -> int:
    number = Decimal(value)
    if number != int(number):
        raise ValueError("digits are lost")
    return int(number)


def decimal_text(value: Scalar, logical: str) -> str:
    """Return the one string that all equal decimals share. Raises ValueError if the decimal has more digits."""
    number, (precision, scale) = Decimal(value), digits(logical)
    made = _EXACT.plus(number.quantize(Decimal(1).scaleb(-scale), context=_EXACT))  # no database has a decimal -0
    if made != number or len(made.as_tuple().digits) > precision:
        raise ValueError("digits are lost")
    return format(made, "f")


def strings_of(decimals: Scalar) -> Scalar:
    """Return an Arrow column of decimals as a column of strings, with all digits."""
    import pyarrow as pa

    strings = [value if value is None else format(value, "f") for value in decimals.to_pylist()]
    return pa.array(strings, pa.large_string())


def _binary(value: Scalar, logical: str) -> bytes:
    if isinstance(value, str):
        return bytes.fromhex(value[2:]) if value.startswith("\\x") else value.encode()
    return bytes(value)


def _moment(value: Scalar, logical: str) -> dt.datetime:
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, dt.datetime):  # such as the nanoseconds that numpy returns
        raise TypeError(f"a timestamp came as {type(value).__name__}")
    if not logical.startswith("timestamp_tz"):
        return moment.replace(tzinfo=None)
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def _span(value: Scalar, logical: str) -> dt.timedelta:
    if not isinstance(value, dt.timedelta):
        raise TypeError(f"a duration came as {type(value).__name__}")
    return value


def _array(value: Scalar, logical: str) -> list[Scalar]:
    if isinstance(value, str):
        raise TypeError("an array came as a string")
    return [_item(item, items(logical)) for item in getattr(value, "tolist", lambda: value)()]


def _item(item: Scalar, logical: str) -> Scalar:
    """Return one item of an array as polars accepts it."""
    if item is None or logical in FLOATS:
        return item
    if logical in INTEGERS:  # numpy has no integer null: it turns all integers into floats and the null into NaN
        return None if item != item else int(item) if item == int(item) else item
    if logical.startswith("timestamp") and item != item:  # pandas' NaT
        return None
    return item if logical in ("text", "date") else canonical_value(item, logical)


def _map(value: Scalar, logical: str) -> dict[Scalar, Scalar]:
    """Return a map, which Arrow returns as pairs, with its entries in order."""
    keys, values = mapped(logical)
    pairs = list(value.items() if isinstance(value, dict) else value)
    made = {_item(key, keys): _item(item, values) for key, item in pairs}
    if len(made) < len(pairs):
        raise ValueError("keys are there twice")
    return made


def _struct(value: Scalar, logical: str) -> dict[str, Scalar]:
    of = fields(logical)
    found = dict(zip(of, value, strict=True)) if isinstance(value, tuple) else dict(value)
    if found.keys() != of.keys():
        raise ValueError("fields are missing, or others are there")
    return {name: _item(found[name], of[name]) for name in of}


def _document(document: Scalar) -> str:
    """Return a JSON document in the one form that all equal documents share: no spaces, sorted keys."""
    compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_of_numpy)
    return compact.encode(document)


def _of_numpy(value: Scalar) -> Scalar:
    """Return a numpy number or array as Python's own type, which JSON supports. Raises TypeError for other values."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} has no form in JSON")
    return value.tolist()


_MADE: dict[str, Callable[[Scalar, str], Scalar]] = {
    "boolean": lambda value, logical: _BOOLEANS[str(value).lower()],
    "decimal": lambda value, logical: decimal_text(value, logical) if is_wide(logical) else Decimal(value),
    "uuid": lambda value, logical: str(uuid.UUID(bytes=value)) if isinstance(value, bytes) else str(value),
    "float32": lambda value, logical: float(value),
    "json": lambda value, logical: _document(json.loads(value) if isinstance(value, str | bytes) else value),
    "category": lambda value, logical: value,
    "binary": _binary,
    "duration": _span,
    "time": lambda value, logical: dt.time.fromisoformat(value) if isinstance(value, str) else value,
    "nested": _struct,
    "array": _array,
    "map": _map,
    **dict.fromkeys(("timestamp", "timestamp_tz", "timestamp_ns", "timestamp_tz_ns"), _moment),
}


_LAST_DAY_OF_PANDAS = 2**63 // (86_400 * 10**6)  # days since 1970: datetime64[us] counts microseconds in 64 bits
_WHOLE = frozenset({*FLOATS, *INTEGERS, "boolean"})  # numpy can hold these without nulls
# numpy has a null for these. Python has no nanoseconds and no year 10000, on which polars panics.
_WITH_NAT = frozenset({*NANOSECONDS, "timestamp", "timestamp_tz", "duration"})
_OBJECTS = {"decimal": "Decimal", "array": "list", "nested": "dict", "map": "dict"}
_OBJECTS |= {"time": "time", "binary": "bytes"}


class NotConvertible(ValueError):
    """A returned column cannot be converted to its canonical type without changing values."""


def load_frame(path: str | Path, frame: str, logical_types: dict[str, str]) -> Frame:
    """Read a dataset's Parquet file into the canonical frame of a library (`pandas`, `polars`).

    `logical_types` maps each column to its logical type (see `harness.check.logical_types`). Raises KeyError for an
    unknown library.
    """
    return {"polars": _load_polars, "pandas": _load_pandas}[frame](path, logical_types)


def _load_polars(path: str | Path, logical_types: dict[str, str]) -> pl.DataFrame:
    import polars as pl

    # By position: polars would read a name such as * or ^.*$ as a pattern.
    places = {name: place for place, name in enumerate(pl.read_parquet_schema(path))}
    columns = [places[name] for name in logical_types]
    # memory_map off: the file's pages would count as file-backed memory of the measured process.
    return pl.read_parquet(path, columns=columns, memory_map=False).rechunk()


def _load_pandas(path: str | Path, logical_types: dict[str, str]) -> pd.DataFrame:
    import pandas as pd
    from pyarrow import parquet

    groups = parquet.read_metadata(path).to_dict()["row_groups"]
    nulls = any(column["statistics"]["null_count"] for group in groups for column in group["columns"])
    if nulls or not OF_BENCHMARKS.issuperset(logical_types.values()):
        return as_pandas(_load_polars(path, logical_types), logical_types)
    frame = pd.read_parquet(path, columns=list(logical_types), engine="pyarrow")
    return frame.astype({name: pandas_dtype(logical, nulls=False) for name, logical in logical_types.items()})


def as_pandas(frame: pl.DataFrame, logical_types: dict[str, str]) -> pd.DataFrame:
    """Return a canonical polars frame as a pandas frame. Raises OverflowError if pandas cannot hold a date."""
    import pandas as pd

    return pd.DataFrame({name: _as_pandas_column(frame[name], logical) for name, logical in logical_types.items()})


def _as_pandas_column(series: pl.Series, logical: str) -> Scalar:
    import numpy as np
    import pandas as pd

    if logical == "date":  # through numpy, because Python has no date before year 1 or after year 9999
        days = series.to_physical().to_list()
        if any(day is not None and abs(day) > _LAST_DAY_OF_PANDAS for day in days):
            raise OverflowError(f"{series.name}: datetime64[us] of pandas has no such date")
        dates = np.array(["NaT" if day is None else day for day in days], "datetime64[D]")
        return pd.Series(dates.astype("datetime64[us]"))
    dtype = pandas_dtype(logical, series.null_count() > 0)
    if is_wide(logical):
        return pd.Series([None if value is None else Decimal(value) for value in series.to_list()], dtype=dtype)
    if logical in FLOATS or logical in _WITH_NAT or (logical in _WHOLE and series.null_count() == 0):
        zone = "UTC" if logical.startswith("timestamp_tz") else None
        made = pd.Series((series.dt.replace_time_zone(None) if zone else series).to_numpy(writable=True))
        return made.dt.tz_localize(zone) if zone else made
    if dtype == "str":
        return pd.Series(pd.array(series.to_arrow(), dtype=dtype))
    return pd.Series(series.to_list(), dtype=dtype)


def canonicalise(returned: Frame, logical_types: dict[str, str]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Turn a returned pandas, polars or Arrow frame into the canonical polars frame.

    Returns the frame, and the dtype of every column that arrived with another dtype than the canonical one. Raises
    NotConvertible for anything but a whole frame in memory, because a lazy frame's work would happen outside the timed
    call. Raises it too if columns are missing or surplus, or a value does not survive the conversion.
    """
    import polars as pl

    library = library_of(returned)
    names = list(map(str, returned.column_names if library == "pyarrow" else returned.columns))
    if names != list(logical_types):
        raise NotConvertible(f"the columns are {', '.join(names) or 'none'} instead of {', '.join(logical_types)}")
    if library == "pandas":
        dtypes = [_pandas_dtype_of(returned[name], logical) for name, logical in logical_types.items()]
        canonical = [_from_pandas(returned[name], logical) for name, logical in logical_types.items()]
    else:
        frame = pl.DataFrame(pl.from_arrow(_without_wide(returned))) if library == "pyarrow" else returned
        dtypes = [str(dtype) for dtype in frame.dtypes]
        canonical = [_canonical(frame[name], logical) for name, logical in logical_types.items()]
    converted = {
        series.name: dtype
        for series, logical, dtype in zip(canonical, logical_types.values(), dtypes, strict=True)
        if dtype != (pandas_dtype(logical, series.null_count() > 0) if library == "pandas" else polars_name(logical))
    }
    return pl.DataFrame(canonical), converted


def _without_wide(table: pa.Table) -> pa.Table:
    """Return an Arrow table whose decimals with too many digits for polars are strings."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_decimal256(field.type):
            table = table.set_column(place, field.name, strings_of(table.column(place)))
    return table


def library_of(returned: Frame) -> str:
    """Return the library of a whole frame in memory: polars, pandas or pyarrow. Raises NotConvertible otherwise."""
    found = (type(returned).__module__.partition(".")[0], type(returned).__name__)
    if found not in (("polars", "DataFrame"), ("pandas", "DataFrame"), ("pyarrow", "Table")):
        raise NotConvertible(
            f"a {'.'.join(found)} is not a dataframe in memory; return one of polars or pandas, or a pyarrow Table"
        )
    return found[0]


def _pandas_dtype_of(series: pd.Series, logical: str) -> str:
    """Name a column's dtype; for unexpected objects also the type of the first one."""
    wanted = _OBJECTS.get(plain(logical))
    first = next((value for value in series if value is not None), None) if wanted and series.dtype == object else None
    found = type(first).__name__
    return str(series.dtype) if first is None or found == wanted else f"{series.dtype} of {found}"


def _from_pandas(series: pd.Series, logical: str) -> pl.Series:
    """Turn one pandas column into its canonical one; a missing value is null, but NaN in a float column stays NaN."""
    import polars as pl

    try:
        if str(series.dtype).startswith("decimal256"):  # an Arrow type that polars lacks
            series = series.astype(object)
        if series.dtype != object:
            return _canonical(pl.from_pandas(series.to_frame(), nan_to_null=logical not in FLOATS).to_series(), logical)
        # None, NaN, NA and NaT all mean "missing" in an object column, except that NaN in a float column is a value.
        missing = series.isna().tolist() if logical not in FLOATS else [value is None for value in series]
        values = [None if gone else value for value, gone in zip(series.tolist(), missing, strict=True)]
        return _canonical(pl.Series(series.name, values, dtype=pl.Object), logical)
    except NotImplementedError as error:  # Arrow's exception for an unknown dtype
        raise NotConvertible(f"{series.name}: {series.dtype} does not convert to {logical}: {error}") from None


def _canonical(series: pl.Series, logical: str) -> pl.Series:
    import polars as pl

    try:
        if isinstance(series.dtype, pl.BaseExtension) and logical != "uuid":  # such as ADBC's numeric: a named string
            series = series.ext.storage()
        if series.dtype == pl.Object:
            series = _from_objects(series, logical)
        elif isinstance(series.dtype, pl.Categorical | pl.Enum):
            series = series.cast(pl.String)
        if logical == "uuid" and series.dtype not in (pl.String, pl.Null):
            return uuid_strings(series)
        if series.dtype == pl.String and (made := _of_strings(series, logical)) is not None:
            return made
        if logical == "json" or is_wide(logical) or (logical not in OF_BENCHMARKS and series.dtype == pl.String):
            return _from_values(series.name, series.to_list(), logical)
        target = polars_dtype(logical)
        if plain(logical) in ("array", "nested", "map") and shape(series.dtype) != shape(target):
            return without_items(series, logical)
        if plain(logical) == "array" and (made := of_lists(series, logical)) is not None:
            return made
        cast = series.cast(target, strict=True)
        if logical == "float32" and series.dtype == pl.Float64:  # perhaps its digits: 0.1 identifies one 32-bit float
            return cast
        survived = series.dtype == pl.String or cast.cast(series.dtype, strict=True).equals(series, null_equal=True)
    except (pl.exceptions.PolarsError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise NotConvertible(
            f"{series.name}: {series.dtype} does not convert to {logical}: {first_line(error)}"
        ) from None
    if not survived:
        raise NotConvertible(f"{series.name}: {series.dtype} changes values when converted to {logical}")
    return cast


def _from_objects(series: pl.Series, logical: str) -> pl.Series:
    import polars as pl

    values = series.to_list()
    if logical == "uuid":
        values = [value.hex() if isinstance(value, bytes) else value and str(value) for value in values]
        return with_dashes(pl.Series(series.name, values, dtype=pl.String))
    if logical == "text":
        values = [value.decode() if isinstance(value, bytes) else value for value in values]
        return pl.Series(series.name, values, dtype=pl.String, strict=True)
    if logical not in OF_BENCHMARKS:
        return _from_values(series.name, values, logical)
    return pl.Series(series.name, values, strict=True)


def _from_values(name: str, values: list[Scalar], logical: str) -> pl.Series:
    """Turn Python objects, or strings of such values, into a canonical column of a type that no benchmark has."""
    import polars as pl

    made = [None if value is None else canonical_value(value, logical) for value in values]
    series = pl.Series(name, made, polars_dtype(logical), strict=True)
    if plain(logical) == "decimal" and series.to_list() != made:  # polars truncates digits beyond those of the type
        raise ValueError("digits are lost")
    return series


def _of_strings(series: pl.Series, logical: str) -> pl.Series | None:
    """Return dates, timestamps with nanoseconds and bytes that arrived as strings; None for other logical types."""
    if logical == "date":
        return series.str.to_date("%Y-%m-%d", strict=True)
    if logical in NANOSECONDS:  # Python would keep only microseconds
        moments = series.str.to_datetime(time_unit="ns", strict=True)
        return moments.dt.replace_time_zone("UTC") if logical == "timestamp_tz_ns" else moments
    return _bytes(series) if logical == "binary" else None


def _bytes(series: pl.Series) -> pl.Series:
    """Turn strings into bytes: Postgres' strings are hexadecimal with a prefix, ClickHouse's the bytes themselves.

    ClickHouse's may not be UTF-8, on which polars panics when it converts them to Python strings.
    """
    import polars as pl

    raw = series.cast(pl.Binary)
    if raw.null_count() < len(raw) and raw.bin.starts_with(b"\\x").all():
        return series.str.slice(2).str.decode("hex", strict=True)
    return raw
