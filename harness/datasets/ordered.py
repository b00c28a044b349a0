"""A dataset in the order of its row key, without holding a large one in memory."""

import polars as pl

from harness.check.canonical import load_frame
from harness.check.kinds import polars_dtype
from harness.datasets.specification import Specification
from harness.model import Dataset

_KEPT_ROWS = 250_000  # of which the frame takes some 60 MB, twice


class OrderedColumns:
    """The columns of a dataset in key order, or as they are where there is no key, each read from disk when asked for.

    Of a large one only the order is kept: 4 bytes a row, where the frame itself would take some 250. Has the part of a
    polars frame that verification needs: `schema`, `height`, `columns` and a column by name.
    """

    def __init__(self, dataset: Dataset, spec: Specification) -> None:
        self._path, self._kinds = dataset.path, spec.kinds
        self._order: pl.Series | None = None
        if spec.row_key:
            keys = load_frame(dataset.path, "polars", {name: spec.kinds[name] for name in spec.row_key})
            self._order = keys.select(pl.arg_sort_by(spec.row_key, nulls_last=True)).to_series()
        self.height = dataset.rows
        self.schema = pl.Schema({name: polars_dtype(kind) for name, kind in spec.kinds.items()})
        self.columns = list(spec.kinds)
        self._kept: dict[str, pl.Series] = {}
        self._as_built: pl.DataFrame | None = None

    def __getitem__(self, name: str) -> pl.Series:
        if name in self._kept:
            return self._kept[name]
        built: pl.Series = load_frame(self._path, "polars", {name: self._kinds[name]})[name]
        column = built if self._order is None else built.gather(self._order)
        if self.height <= _KEPT_ROWS:
            self._kept[name] = column
        return column

    @property
    def as_built(self) -> pl.DataFrame | None:
        """The frame in the order in which it was built; None of a large one."""
        if self._as_built is None and self.height <= _KEPT_ROWS:
            self._as_built = load_frame(self._path, "polars", self._kinds)
        return self._as_built
