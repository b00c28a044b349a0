"""A dataset in the order of its row key, without holding it in memory."""

import polars as pl

from harness.check.canonical import load_frame
from harness.check.equality import in_order
from harness.check.kinds import polars_dtype
from harness.datasets.specification import Specification
from harness.model import Dataset


class OrderedColumns:
    """The columns of a dataset in key order, each read from disk when it is asked for.

    Only the order is kept: 4 bytes a row, where the frame itself would take some 250. Has the part of a polars frame
    that verification needs: `schema`, `height`, `columns` and a column by name.
    """

    def __init__(self, dataset: Dataset, spec: Specification) -> None:
        self._path, self._kinds = dataset.path, spec.kinds
        keys = load_frame(dataset.path, "polars", {name: spec.kinds[name] for name in spec.row_key or spec.kinds})
        self._order = in_order(keys, spec.row_key)
        self.height = dataset.rows
        self.schema = pl.Schema({name: polars_dtype(kind) for name, kind in spec.kinds.items()})
        self.columns = list(spec.kinds)

    def __getitem__(self, name: str) -> pl.Series:
        return load_frame(self._path, "polars", {name: self._kinds[name]})[name].gather(self._order)
