"""A dataset read column by column is the dataset sorted by its key."""

import polars as pl

from harness.datasets import ordered, store
from harness.datasets.ordered import OrderedColumns


def test_the_columns_are_those_of_the_frame_sorted_by_its_key(tmp_path):
    spec = store.specification("analytics_metrics")
    dataset = store.ensure(tmp_path, spec.name, 2_500, 3)
    expected = pl.read_parquet(dataset.path).sort(spec.row_key)
    by_key = OrderedColumns(dataset, spec)
    assert by_key.schema == expected.schema
    assert (by_key.height, by_key.columns) == (expected.height, expected.columns)
    assert all(by_key[name].equals(expected[name], check_dtypes=True) for name in expected.columns)


def test_of_a_large_dataset_nothing_but_the_order_is_kept(tmp_path, monkeypatch):
    spec = store.specification("analytics_metrics")
    dataset = store.ensure(tmp_path, spec.name, 2_500, 3)
    small = OrderedColumns(dataset, spec)
    assert small["metric_1"] is small["metric_1"]
    assert small.as_built.equals(pl.read_parquet(dataset.path))
    monkeypatch.setattr(ordered, "_KEPT_ROWS", 2_499)
    large = OrderedColumns(dataset, spec)
    assert large["metric_1"] is not large["metric_1"]
    assert large["metric_1"].equals(small["metric_1"])
    assert large.as_built is None
