"""The tables of published benchmarks match their documentation, and are the same everywhere and for ever."""

import datetime
import hashlib
import re

import numpy as np
import pyarrow as pa
import pytest

from harness.datasets import analytics_metrics, integers, store
from harness.datasets.integers import MAXIMUM
from harness.datasets.seeded import CHUNK_ROWS
from harness.datasets.specification import PLAIN
from harness.systems import SYSTEMS

METRICS, INTEGERS = analytics_metrics.SPECIFICATION, integers.SPECIFICATION
ARROW_TYPES = {
    "uuid": pa.string(),
    "date": pa.date32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "text": pa.string(),
    "float64": pa.float64(),
}
DEFAULT_SEED = 20260407  # of the integers
LARGEST_PUBLISHED = 1_000_000  # rows


@pytest.mark.parametrize(
    ("dataset", "names"),
    [
        (
            analytics_metrics,
            [
                *("entity_key", "event_date", "source_id"),
                *(f"dimension_{letter}" for letter in "abcdef"),
                *("metric_1", "metric_2", "metric_3", "metric_value"),
            ],
        ),
        (integers, [f"col{number}" for number in range(100)]),
    ],
    ids=["analytics_metrics", "integers"],
)
def test_the_columns_are_those_of_the_published_table_in_its_order_of_the_types_they_declare(dataset, names):
    (batch,) = dataset.SPECIFICATION.build(1_000, 1)
    assert batch.schema.names == names == list(dataset.LOGICAL_TYPES)
    assert batch.schema.types == [ARROW_TYPES[logical] for logical in dataset.LOGICAL_TYPES.values()]


def test_keys_are_unique_over_chunks():
    keys = [key for batch in METRICS.build(2 * CHUNK_ROWS + 1, 1) for key in batch["entity_key"].to_pylist()]
    assert len(set(keys)) == len(keys) == 2 * CHUNK_ROWS + 1


def test_dates_lie_within_2025_and_reach_both_ends():
    dates = pa.Table.from_batches(METRICS.build(20_000, 1))["event_date"].to_pylist()
    assert min(dates) == datetime.date(2025, 1, 1)
    assert max(dates) == datetime.date(2025, 12, 31)


def test_strings_are_words_with_a_number_that_need_no_quoting_in_any_format():
    table = pa.Table.from_batches(METRICS.build(20_000, 1))
    logical_types = analytics_metrics.LOGICAL_TYPES
    strings = [table[name].to_pylist() for name, logical in logical_types.items() if logical == "text"]
    for values in strings:
        assert all(re.fullmatch(r"[a-z_]+_\d+", value) for value in values)
        assert {len(value) for value in values} <= set(range(5, 22))
    assert len(set(strings[0])) == 12


@pytest.mark.parametrize(
    ("system", "profiles"),
    [("postgres", {PLAIN, "heap", "unlogged"}), ("clickhouse", {PLAIN, "heap", "log", "memory"})],
)
def test_every_table_of_a_database_names_every_column_once(system, profiles):
    names = (PLAIN, "heap", "unlogged", "log", "memory")
    statements = {name: SYSTEMS[system].tables.definition(METRICS, name) for name in names}
    assert {name for name, statement in statements.items() if statement} == profiles
    for statement in filter(None, statements.values()):
        columns = re.findall(r'(?:\(|, )["`](\w+)["`] (?=[A-Za-z])', statement.partition("ENGINE")[0])
        logical_types = analytics_metrics.LOGICAL_TYPES
        assert columns[: len(logical_types)] == list(logical_types)


@pytest.fixture(scope="module")
def columns():
    """The columns for key and query, and two more, at the largest published size, with the default seed."""
    names = dict.fromkeys((*INTEGERS.row_key, "col97", "col99"))
    batches = [batch.select(names) for batch in INTEGERS.build(LARGEST_PUBLISHED, DEFAULT_SEED)]
    return {name: pa.Table.from_batches(batches)[name].to_numpy() for name in names}


def test_values_reach_both_ends_of_the_published_range_and_no_further():
    lowest, highest = MAXIMUM, 0
    for batch in INTEGERS.build(2 * CHUNK_ROWS, DEFAULT_SEED):  # 20 million values: each is expected 20 times
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
    for name in INTEGERS.row_key:  # three numbers below 1,000,001 fit into one of 64 bits
        key = key * (MAXIMUM + 1) + columns[name]
    assert len(INTEGERS.row_key) == 3
    assert len(np.unique(key)) == LARGEST_PUBLISHED


@pytest.mark.long
def test_no_single_column_would_do_as_a_key(columns):
    assert all(np.bincount(values).max() > 1 for values in columns.values())


def test_the_published_query_selects_about_one_row_in_a_thousand(columns):
    passing = int(((columns["col1"] > 100) & (columns["col97"] < 1_000)).sum())
    assert passing == 953


def test_a_thousand_rows_of_integers_with_seed_1_have_the_values_they_have_always_had():
    (batch,) = INTEGERS.build(1_000, 1)
    rows = "\n".join(",".join(map(str, row.values())) for row in batch.to_pylist())
    assert hashlib.sha256(rows.encode()).hexdigest() == (
        "2f969ae9272e247625350faf655d35fa9c25bb5b39bcb45ee408b59da4a8a03d"
    )


def test_the_integers_are_kept_on_disk_in_no_more_bytes_than_announced(tmp_path):
    store.ensure(tmp_path, "integers", 10_000, 1)
    size = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert 0.5 < size / (INTEGERS.bytes_a_row * 10_000) < 1


def test_no_database_has_a_table_of_the_integers():
    assert not INTEGERS.in_databases
    assert {system.tables.definition(INTEGERS, PLAIN) for system in SYSTEMS.values()} == {None}
