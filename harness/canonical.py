"""The canonical frame of a dataset in pandas and polars, and the way back to it from whatever a transport returned.

Canonical dtypes are what a careful user would hand over: in polars String for a UUID (polars has no UUID type), Date,
Int32, String, Float64; in pandas 3 `str`, `datetime64[us]` (pandas has no date dtype), int32, `str`, float64.
All conversions here happen outside the clock.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

# Kind of a column -> canonical dtype as each library prints it.
POLARS_DTYPES = {"uuid": "String", "date": "Date", "int32": "Int32", "text": "String", "float64": "Float64"}
PANDAS_DTYPES = {"uuid": "str", "date": "datetime64[us]", "int32": "int32", "text": "str", "float64": "float64"}


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
    Raises NotConvertible when columns are missing or surplus, or a value does not survive the conversion.
    """
    import polars as pl

    if type(returned).__module__.startswith("pandas"):
        dtypes = {name: str(dtype) for name, dtype in returned.dtypes.items()}
        wanted = {name: PANDAS_DTYPES[kind] for name, kind in kinds.items()}
        columns = {str(name): _from_pandas(returned[name]) for name in returned.columns}
    else:
        frame = returned if isinstance(returned, pl.DataFrame) else pl.from_arrow(returned)
        assert isinstance(frame, pl.DataFrame)
        dtypes = {name: str(dtype) for name, dtype in frame.schema.items()}
        wanted = {name: POLARS_DTYPES[kind] for name, kind in kinds.items()}
        columns = {series.name: series for series in frame.iter_columns()}
    if list(dtypes) != list(kinds):
        raise NotConvertible(f"expected columns {', '.join(kinds)}; found {', '.join(map(str, dtypes)) or 'none'}")
    converted = {name: dtype for name, dtype in dtypes.items() if dtype != wanted[name]}
    return pl.DataFrame([_canonical(columns[name], kind).alias(name) for name, kind in kinds.items()]), converted


def _from_pandas(series: pd.Series) -> pl.Series:
    """Bring one pandas column over unchanged in value; Python objects stay objects where they are not text or bytes."""
    import polars as pl

    if series.dtype != object:
        return pl.Series(pl.from_pandas(series.to_frame()).to_series())
    values = series.tolist()
    kinds = {type(value) for value in values if value is not None}
    plain = all(issubclass(kind, (str, bytes, bool, int, float)) or kind.__name__ == "date" for kind in kinds)
    return pl.Series(values, strict=True) if plain and len(kinds) == 1 else pl.Series(values, dtype=pl.Object)


def _canonical(series: pl.Series, kind: str) -> pl.Series:
    import polars as pl

    try:
        if series.dtype == pl.Object:
            series = _from_objects(series, kind)
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
    if kind in ("uuid", "text"):
        values = [
            None if value is None else value.hex() if isinstance(value, bytes) else str(value) for value in values
        ]
        text = pl.Series(series.name, values, dtype=pl.String)
        return _dashes(text) if kind == "uuid" else text
    return pl.Series(series.name, values, strict=True)


def _uuid_text(series: pl.Series) -> pl.Series:
    """Turn 16-byte binary UUIDs (network byte order) into their 36-character text."""
    import polars as pl

    storage = series.ext.storage() if isinstance(series.dtype, pl.BaseExtension) else series
    return _dashes(storage.cast(pl.Binary).bin.encode("hex"))


def _dashes(text: pl.Series) -> pl.Series:
    return text.str.replace(r"^(\w{8})(\w{4})(\w{4})(\w{4})(\w{12})$", "$1-$2-$3-$4-$5")
