"""polars columns of lists, structs or UUIDs that arrived in another form than the canonical one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.check.logical_types import Dtype, items, polars_dtype

if TYPE_CHECKING:
    import polars as pl

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
