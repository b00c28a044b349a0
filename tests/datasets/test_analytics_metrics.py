"""The analytics_metrics data match their documentation, and are the same everywhere and for ever."""

import datetime
import re

import pyarrow as pa
import pytest

from harness.datasets.analytics_metrics import LOGICAL_TYPES, SPECIFICATION
from harness.datasets.seeded import CHUNK_ROWS
from harness.datasets.specification import PLAIN
from harness.systems import SYSTEMS

ARROW_TYPES = {
    "uuid": pa.string(),
    "date": pa.date32(),
    "int32": pa.int32(),
    "text": pa.string(),
    "float64": pa.float64(),
}


@pytest.fixture(scope="module")
def table():
    return pa.Table.from_batches(SPECIFICATION.build(1_000, 1))


def of_logical_type(table, logical):
    return {name: table[name].to_pylist() for name, its_type in LOGICAL_TYPES.items() if its_type == logical}


def test_there_are_the_13_columns_of_the_published_table_in_its_order(table):
    assert table.column_names == [
        "entity_key",
        "event_date",
        "source_id",
        *(f"dimension_{letter}" for letter in "abcdef"),
        "metric_1",
        "metric_2",
        "metric_3",
        "metric_value",
    ]
    assert table.column_names == list(LOGICAL_TYPES)


def test_every_column_has_the_arrow_type_of_its_logical_type(table):
    assert {field.name: field.type for field in table.schema} == {n: ARROW_TYPES[k] for n, k in LOGICAL_TYPES.items()}


def test_keys_are_unique_over_chunks():
    keys = [key for batch in SPECIFICATION.build(2 * CHUNK_ROWS + 1, 1) for key in batch["entity_key"].to_pylist()]
    assert len(set(keys)) == len(keys) == 2 * CHUNK_ROWS + 1


def test_dates_lie_within_2025_and_reach_both_ends():
    dates = pa.Table.from_batches(SPECIFICATION.build(20_000, 1))["event_date"].to_pylist()
    assert min(dates) == datetime.date(2025, 1, 1)
    assert max(dates) == datetime.date(2025, 12, 31)


def test_strings_are_words_with_a_number_that_need_no_quoting_in_any_format():
    table = pa.Table.from_batches(SPECIFICATION.build(20_000, 1))
    for values in of_logical_type(table, "text").values():
        assert all(re.fullmatch(r"[a-z_]+_\d+", value) for value in values)
        assert {len(value) for value in values} <= set(range(5, 22))
    distinct = [len(set(values)) for values in of_logical_type(table, "text").values()]
    assert distinct[0] == 12
    assert max(distinct) <= 20_000


@pytest.mark.parametrize(
    ("system", "profiles"),
    [("postgres", {PLAIN, "heap", "unlogged"}), ("clickhouse", {PLAIN, "heap", "log", "memory"})],
)
def test_every_table_of_a_database_names_every_column_once(system, profiles):
    names = (PLAIN, "heap", "unlogged", "log", "memory")
    statements = {name: SYSTEMS[system].tables.definition(SPECIFICATION, name) for name in names}
    assert {name for name, statement in statements.items() if statement} == profiles
    for statement in filter(None, statements.values()):
        columns = re.findall(r'(?:\(|, )["`](\w+)["`] (?=[A-Za-z])', statement.partition("ENGINE")[0])
        assert columns[: len(LOGICAL_TYPES)] == list(LOGICAL_TYPES)
