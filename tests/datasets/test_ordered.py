"""A dataset read column by column is the dataset sorted by its key."""

import polars as pl

from harness.datasets import store
from harness.datasets.ordered import OrderedColumns


def test_the_columns_are_those_of_the_frame_sorted_by_its_key(tmp_path):
    spec = store.specification("analytics_metrics")
    dataset = store.ensure(tmp_path, spec.name, 2_500, 3)
    expected = pl.read_parquet(dataset.path).sort(spec.row_key)
    ordered = OrderedColumns(dataset, spec)
    assert ordered.schema == expected.schema
    assert (ordered.height, ordered.columns) == (expected.height, expected.columns)
    assert all(ordered[name].equals(expected[name], check_dtypes=True) for name in expected.columns)
