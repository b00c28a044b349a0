"""The integers match their documentation, and are the same everywhere and for ever."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from harness.datasets import store
from harness.datasets.integers import LOGICAL_TYPES, MAXIMUM, SPECIFICATION
from harness.datasets.seeded import CHUNK_ROWS
from harness.datasets.specification import PLAIN
from harness.systems import SYSTEMS

DEFAULT_SEED = 20260407
LARGEST_PUBLISHED = 1_000_000  # rows


@pytest.fixture(scope="module")
def table():
    return pa.Table.from_batches(SPECIFICATION.build(1_000, 1))


@pytest.fixture(scope="module")
def columns():
    """The columns for key and query, and two more, at the largest published size, with the default seed."""
    names = dict.fromkeys((*SPECIFICATION.row_key, "col97", "col99"))
    batches = [batch.select(names) for batch in SPECIFICATION.build(LARGEST_PUBLISHED, DEFAULT_SEED)]
    return {name: pa.Table.from_batches(batches)[name].to_numpy() for name in names}


def test_there_are_the_100_columns_of_the_published_table_in_its_order(table):
    assert table.column_names == [f"col{number}" for number in range(100)] == list(LOGICAL_TYPES)


def test_every_column_is_of_64_bit_integers_and_says_so(table):
    assert set(table.schema.types) == {pa.int64()}
    assert set(LOGICAL_TYPES.values()) == {"int64"}


def test_values_reach_both_ends_of_the_published_range_and_no_further():
    lowest, highest = MAXIMUM, 0
    for batch in SPECIFICATION.build(2 * CHUNK_ROWS, DEFAULT_SEED):  # 20 million values: each is expected 20 times
        for column in batch.columns:
            values = column.to_numpy()
            lowest, highest = min(lowest, int(values.min())), max(highest, int(values.max()))
    assert (lowest, highest) == (0, 1_000_000)


@pytest.mark.long
def test_values_are_spread_evenly(columns):
    for values in columns.values():
        tenths = np.bincount(values // 100_001, minlength=10) / len(values)
        assert np.abs(tenths - 0.1).max() < 0.002  # 6 standard deviations


@pytest.mark.long
def test_the_key_is_unique_at_the_largest_published_size_with_the_default_seed(columns):
    key = np.zeros(LARGEST_PUBLISHED, np.int64)
    for name in SPECIFICATION.row_key:  # three numbers below 1,000,001 fit into one of 64 bits
        key = key * (MAXIMUM + 1) + columns[name]
    assert len(SPECIFICATION.row_key) == 3
    assert len(np.unique(key)) == LARGEST_PUBLISHED


@pytest.mark.long
def test_no_single_column_would_do_as_a_key(columns):
    assert all(np.bincount(values).max() > 1 for values in columns.values())


def test_the_published_query_selects_about_one_row_in_a_thousand(columns):
    passing = int(((columns["col1"] > 100) & (columns["col97"] < 1_000)).sum())
    assert 800 < passing < 1_200
    assert passing == 953


def test_a_thousand_rows_with_seed_1_have_the_values_they_have_always_had(table):
    rows = "\n".join(",".join(map(str, row.values())) for row in table.to_pylist())
    assert hashlib.sha256(rows.encode()).hexdigest() == (
        "2f969ae9272e247625350faf655d35fa9c25bb5b39bcb45ee408b59da4a8a03d"
    )


def test_the_dataset_is_kept_on_disk_in_no_more_bytes_than_it_announces(tmp_path):
    store.ensure(tmp_path, "integers", 10_000, 1)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert 0.5 < size / (SPECIFICATION.bytes_a_row * 10_000) < 1


def test_no_database_has_a_table_of_it():
    assert not SPECIFICATION.in_databases
    assert {system.tables.definition(SPECIFICATION, PLAIN) for system in SYSTEMS.values()} == {None}
