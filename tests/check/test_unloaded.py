"""Parquet files that a transport left are compared by sums, whatever types hold the values."""

import uuid
from datetime import date, datetime

import pyarrow as pa
import pytest
from pyarrow import parquet

from harness.check import sums, unloaded
from harness.check.canonical import NotConvertible

LOGICAL_TYPES = {"key": "uuid", "day": "date", "number": "int32", "word": "text", "value": "float64"}
KEYS = [str(uuid.UUID(int=number)) for number in (1, 2**127, 3)]
DAYS = [date(2025, 1, 1), None, date(1969, 12, 31)]
TABLE = pa.table(
    {
        "key": KEYS,
        "day": pa.array(DAYS, pa.date32()),
        "number": pa.array([1, None, -3], pa.int32()),
        "word": ["", "ä", None],
        "value": [0.5, float("nan"), None],
    }
)
OTHER_TYPES = pa.table(
    {
        "value": TABLE["value"],
        "key": pa.array([uuid.UUID(key).bytes for key in KEYS], pa.binary(16)),
        "day": pa.array([day and datetime(day.year, day.month, day.day) for day in DAYS], pa.timestamp("us")),
        "number": pa.array([1, None, -3], pa.int64()),
        "word": TABLE["word"].combine_chunks().dictionary_encode(),
    }
)


def written(folder, *tables):
    for place, table in enumerate(tables):
        path = folder / str(place)
        path.mkdir()
        parquet.write_table(table, path / "part.parquet")
    return unloaded.summed(folder, LOGICAL_TYPES)


def test_several_files_with_other_types_and_columns_in_another_order_are_the_same_rows(tmp_path):
    found, converted = written(tmp_path, OTHER_TYPES.slice(0, 1), TABLE.slice(1, 1), OTHER_TYPES.slice(2, 1))
    assert found == sums.of_table(TABLE, LOGICAL_TYPES)
    assert converted == {
        "day": "timestamp[us]",
        "key": "fixed_size_binary[16]",
        "number": "int64",
        "word": "dictionary<values=string, indices=int32, ordered=0>",
    }


def test_no_file_is_no_row(tmp_path):
    assert written(tmp_path)[0].rows == 0


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("day", pa.array([datetime(2025, 1, 1, 12)] * 3, pa.timestamp("us"))),
        ("number", pa.array([2**31] * 3, pa.int64())),
        ("key", pa.array([b"short"] * 3, pa.binary())),
    ],
)
def test_a_value_that_its_canonical_type_does_not_hold_is_refused(tmp_path, column, values):
    place = TABLE.column_names.index(column)
    with pytest.raises(NotConvertible):
        written(tmp_path, TABLE.set_column(place, column, values))


def test_a_missing_column_is_refused(tmp_path):
    with pytest.raises(NotConvertible, match=r"the columns are key, day.* instead of key, day, number, word, value$"):
        written(tmp_path, TABLE.select(["key", "day"]))


def test_a_row_twice_and_a_row_less_are_seen(tmp_path):
    found, _ = written(tmp_path, TABLE, TABLE.slice(0, 1))
    assert sums.differences(sums.of_table(TABLE, LOGICAL_TYPES), found) == ["expected 3 rows, found 4"]
