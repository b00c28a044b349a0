"""The canonical frame of a dataset in pandas and polars, and the way back to it from whatever a transport returned.

Canonical dtypes are what a careful user would hand over: in polars String for a UUID (polars has no UUID type), Date,
Int32, Int64, String, Float64; in pandas 3 `str`, `datetime64[us]` (pandas has no date dtype), int32, int64, `str`,
float64.
All conversions here happen outside the clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

# Kind of a column -> canonical dtype as each library prints it.
POLARS_DTYPES = {
    "uuid": "String",
    "date": "Date",
    "int32": "Int32",
    "int64": "Int64",
    "text": "String",
    "float64": "Float64",
}
PANDAS_DTYPES = {
    "uuid": "str",
    "date": "datetime64[us]",
    "int32": "int32",
    "int64": "int64",
    "text": "str",
    "float64": "float64",
}


class NotConvertible(ValueError):
    """A returned column cannot be turned into its canonical type without changing values."""


def load_frame(path: str | Path, frame: str, kinds: dict[str, str]) -> Any:
    """Read a dataset's Parquet file into the canonical frame of a library (`pandas`, `polars`).

    `kinds` maps each column to its kind (a key of POLARS_DTYPES). Raises KeyError for an unknown library.
    """
    return {"polars": _load_polars, "pandas": _load_pandas}[frame](path, kinds)


def _load_polars(path: str | Path, kinds: dict[str, str]) -> pl.DataFrame:
    import polars as pl

    # memory_map off: pages of the file would show as file-backed memory of the process under measurement.
    return pl.read_parquet(path, columns=list(kinds), memory_map=False).rechunk()


def _load_pandas(path: str | Path, kinds: dict[str, str]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.read_parquet(path, columns=list(kinds), engine="pyarrow")
    return frame.astype({name: PANDAS_DTYPES[kind] for name, kind in kinds.items()})


def canonicalise(returned: Any, kinds: dict[str, str]) -> tuple[pl.DataFrame, dict[str, str]]:
    """Turn a returned pandas, polars or Arrow frame into the canonical polars frame.

    Returns the frame and, for every column that came back with another dtype than the canonical one, that dtype.
    Raises NotConvertible for anything but a whole frame in memory (the work of a lazy one would fall outside the
    clock), when columns are missing or surplus, or a value does not survive the conversion.
    """
    import polars as pl

    library = library_of(returned)
    names = list(map(str, returned.column_names if library == "pyarrow" else returned.columns))
    if names != list(kinds):
        raise NotConvertible(f"expected columns {', '.join(kinds)}; found {', '.join(names) or 'none'}")
    if library == "pandas":
        dtypes = [str(dtype) for dtype in returned.dtypes]
        canonical = [_from_pandas(returned[name], kind) for name, kind in kinds.items()]
    else:
        frame = pl.DataFrame(pl.from_arrow(returned)) if library == "pyarrow" else returned
        dtypes = [str(dtype) for dtype in frame.dtypes]
        canonical = [_canonical(frame[name], kind) for name, kind in kinds.items()]
    wanted = PANDAS_DTYPES if library == "pandas" else POLARS_DTYPES
    converted = {
        name: dtype for (name, kind), dtype in zip(kinds.items(), dtypes, strict=True) if dtype != wanted[kind]
    }
    return pl.DataFrame(canonical), converted


def library_of(returned: Any) -> str:
    """Return the library of a whole frame in memory: polars, pandas or pyarrow. Raises NotConvertible for all else."""
    found = (type(returned).__module__.partition(".")[0], type(returned).__name__)
    if found not in (("polars", "DataFrame"), ("pandas", "DataFrame"), ("pyarrow", "Table")):
        raise NotConvertible(f"expected a whole dataframe in memory, found {'.'.join(found)}")
    return found[0]


def _from_pandas(series: pd.Series, kind: str) -> pl.Series:
    """Turn one pandas column into its canonical one; what is missing is null, but a NaN among floats stays NaN."""
    import polars as pl

    try:
        if series.dtype != object:
            return _canonical(pl.from_pandas(series.to_frame(), nan_to_null=kind != "float64").to_series(), kind)
        # None, NaN, NA and NaT all say "missing" in an object column, except that NaN is a float among floats.
        missing = series.isna().tolist() if kind != "float64" else [value is None for value in series]
        values = [None if gone else value for value, gone in zip(series.tolist(), missing, strict=True)]
        return _canonical(pl.Series(series.name, values, dtype=pl.Object), kind)
    except NotImplementedError as error:  # what Arrow raises for a dtype it does not have
        raise NotConvertible(f"{series.name}: {series.dtype} does not convert to {kind}: {error}") from None


def _canonical(series: pl.Series, kind: str) -> pl.Series:
    import polars as pl

    try:
        if series.dtype == pl.Object:
            series = _from_objects(series, kind)
        elif isinstance(series.dtype, pl.Categorical | pl.Enum):
            series = series.cast(pl.String)
        if kind == "uuid" and series.dtype != pl.String:
            return _uuid_text(series)
        if kind == "date" and series.dtype == pl.String:
            return series.str.to_date("%Y-%m-%d", strict=True)
        target = getattr(pl, POLARS_DTYPES[kind])
        cast = series.cast(target, strict=True)
        survived = series.dtype == pl.String or cast.cast(series.dtype, strict=True).equals(series, null_equal=True)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise NotConvertible(f"{series.name}: {series.dtype} does not convert to {kind}: {reason}") from None
    if not survived:
        raise NotConvertible(f"{series.name}: {series.dtype} changes values when converted to {kind}")
    return cast


def _from_objects(series: pl.Series, kind: str) -> pl.Series:
    import polars as pl

    values = series.to_list()
    if kind == "uuid":
        values = [value.hex() if isinstance(value, bytes) else value and str(value) for value in values]
        return _dashes(pl.Series(series.name, values, dtype=pl.String))
    if kind == "text":
        values = [value.decode() if isinstance(value, bytes) else value for value in values]
        return pl.Series(series.name, values, dtype=pl.String, strict=True)
    return pl.Series(series.name, values, strict=True)


def _uuid_text(series: pl.Series) -> pl.Series:
    """Turn 16-byte binary UUIDs (network byte order) into their 36-character text."""
    import polars as pl

    storage = series.ext.storage() if isinstance(series.dtype, pl.BaseExtension) else series
    digits = storage.cast(pl.Binary).bin.encode("hex").alias("digits").to_frame()
    # Slices, not the regular expression of _dashes: five times as fast over a whole column.
    groups = (
        pl.col("digits").str.slice(start, length) for start, length in ((0, 8), (8, 4), (12, 4), (16, 4), (20, None))
    )
    return digits.select(pl.concat_str(groups, separator="-").alias(series.name)).to_series()


def _dashes(text: pl.Series) -> pl.Series:
    return text.str.replace(r"^(\w{8})(\w{4})(\w{4})(\w{4})(\w{12})$", "$1-$2-$3-$4-$5")
