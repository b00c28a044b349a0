"""A dataset in row key order, without holding a large one in memory."""

from functools import cached_property

import polars as pl

from harness.check.canonical import load_frame
from harness.check.logical_types import polars_dtype
from harness.datasets.specification import Specification
from harness.model import Dataset

_KEPT_ROWS = 250_000  # the frame takes about 60 MB at this size, twice


class OrderedColumns:
    """A dataset's columns in key order, or as built without a key, each read from disk on request.

    For a large dataset it keeps only the order: 4 bytes a row, where the frame would take about 250. It has the
    interface of a polars frame that verification uses: `schema`, `height`, `columns` and a column by name.
    """

    def __init__(self, dataset: Dataset, spec: Specification) -> None:
        self._path, self._logical_types = dataset.path, spec.logical_types
        self._order: pl.Series | None = None
        if spec.row_key:
            keys = load_frame(dataset.path, "polars", {name: spec.logical_types[name] for name in spec.row_key})
            self._order = keys.select(pl.arg_sort_by(spec.row_key, nulls_last=True)).to_series()
        self.height = dataset.rows
        self.schema = pl.Schema({name: polars_dtype(logical) for name, logical in spec.logical_types.items()})
        self.columns = list(spec.logical_types)
        self._kept: dict[str, pl.Series] = {}

    def __getitem__(self, name: str) -> pl.Series:
        if self.as_built is None:
            return self._in_order(load_frame(self._path, "polars", {name: self._logical_types[name]})[name])
        if name not in self._kept:
            self._kept[name] = self._in_order(self.as_built[name])
        return self._kept[name]

    @cached_property
    def as_built(self) -> pl.DataFrame | None:
        """The frame in the order in which it was built; None for a large one."""
        return load_frame(self._path, "polars", self._logical_types) if self.height <= _KEPT_ROWS else None

    def _in_order(self, built: pl.Series) -> pl.Series:
        return built if self._order is None else built.gather(self._order)
