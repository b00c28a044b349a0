"""Verification finds every changed value, whatever it is, and finds nothing where only the order differs."""

import datetime as dt
import math
import struct

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.check.canonical import canonicalise
from harness.check.equality import came_back, differences, equal_as_they_stand

KEY = ("k",)
LOGICAL_TYPES = {"k": "uuid", "d": "date", "i": "int32", "t": "text", "f": "float64"}
SCHEMA = {"k": pl.String, "d": pl.Date, "i": pl.Int32, "t": pl.String, "f": pl.Float64}
VALUES = {
    "d": st.none() | st.dates(),
    "i": st.none() | st.integers(-(2**31), 2**31 - 1),
    "t": st.sampled_from([None, "", "None", "nan", "null", "\\N", "a\tb"]) | st.text(max_size=5),
    "f": st.sampled_from([None, 0.0, -0.0, math.nan, math.inf, 5e-324]) | st.floats(),
}


def frame(rows):
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


FRAMES = st.lists(
    st.tuples(st.uuids(version=4).map(str), *VALUES.values()), min_size=1, max_size=12, unique_by=lambda row: row[0]
)
THREE = frame(
    [
        ("a", dt.date(2025, 1, 1), 1, "x", 0.1),
        ("b", dt.date(2025, 1, 2), 2, "", 0.0),
        ("c", dt.date(2025, 1, 3), 3, "nan", math.nan),
    ]
)


def in_key_order(frame, row_key):
    return frame.sort(row_key, nulls_last=True)


def compare(expected, actual):
    return differences(in_key_order(expected, KEY), in_key_order(actual, KEY), KEY)


def same_value(one, other):
    """Bit for bit, any NaN equal to any NaN: independent of polars."""
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or struct.pack("d", one) == struct.pack("d", other)
    return type(one) is type(other) and one == other


@settings(max_examples=100)
@given(rows=FRAMES, data=st.data())
def test_one_changed_value_is_always_found_and_its_column_named(rows, data):
    row = data.draw(st.integers(0, len(rows) - 1))
    column = data.draw(st.integers(1, 4))
    name = list(SCHEMA)[column]
    value = data.draw(VALUES[name].filter(lambda value: not same_value(value, rows[row][column])))
    changed = [list(values) for values in rows]
    changed[row][column] = value
    found = compare(frame(rows), frame(changed))
    assert len(found) == 1
    assert found[0].startswith(f"{name}: 1 of {len(rows)} values differ; first at k='{rows[row][0]}'")


@settings(max_examples=50)
@given(rows=FRAMES, data=st.data())
def test_a_changed_key_is_always_found_even_where_it_becomes_a_duplicate(rows, data):
    row = data.draw(st.integers(0, len(rows) - 1))
    others = st.sampled_from([values[0] for values in rows]) | st.uuids(version=4).map(str)
    key = data.draw(others.filter(lambda key: key != rows[row][0])) if len(rows) > 1 else "another"
    changed = [*rows[:row], (key, *rows[row][1:]), *rows[row + 1 :]]
    assert compare(frame(rows), frame(changed))


@settings(max_examples=50)
@given(rows=FRAMES, data=st.data())
def test_the_order_of_rows_is_never_a_difference(rows, data):
    assert compare(frame(rows), frame(data.draw(st.permutations(rows)))) == []


@settings(max_examples=50)
@given(rows=FRAMES, data=st.data())
def test_a_missing_or_duplicated_row_is_always_found(rows, data):
    row = data.draw(st.integers(0, len(rows) - 1))
    expected = frame(rows)
    assert compare(expected, frame(rows[:row] + rows[row + 1 :])) == [
        f"expected {len(rows)} rows, found {len(rows) - 1}"
    ]
    assert compare(expected, frame([*rows, rows[row]])) == [f"expected {len(rows)} rows, found {len(rows) + 1}"]


@settings(max_examples=50)
@given(rows=FRAMES, data=st.data())
def test_a_row_replaced_by_a_copy_of_another_is_always_found(rows, data):
    if len(rows) < 2:
        rows = [*rows, ("another", *rows[0][1:])]
    gone, copied = data.draw(st.permutations(range(len(rows))))[:2]
    changed = [*rows[:gone], rows[copied], *rows[gone + 1 :]]
    assert any(line.startswith("k: ") for line in compare(frame(rows), frame(changed)))


@settings(max_examples=50)
@given(rows=FRAMES)
def test_a_frame_that_went_through_polars_untouched_has_no_difference(rows):
    canonical, converted = canonicalise(frame(rows), LOGICAL_TYPES)
    assert compare(frame(rows), canonical) == []
    assert came_back(converted) == "exact"


@pytest.mark.parametrize(
    ("column", "row", "value"),
    [
        ("f", 0, 0.1 + 2**-56),
        ("f", 1, -0.0),
        ("f", 1, 5e-324),
        ("f", 1, None),
        ("f", 2, None),
        ("f", 2, 0.0),
        ("t", 1, None),
        ("t", 1, " "),
        ("t", 2, None),
        ("t", 2, "NaN"),
        ("i", 0, None),
        ("i", 0, -1),
        ("d", 0, None),
        ("d", 0, dt.date(2024, 12, 31)),
    ],
)
def test_the_smallest_change_is_found(column, row, value):
    changed = THREE.with_columns(
        pl.when(pl.int_range(pl.len()) == row)
        .then(pl.lit(value, dtype=SCHEMA[column]))
        .otherwise(pl.col(column))
        .alias(column)
    )
    assert compare(THREE, THREE.clone()) == []
    assert [line.partition(":")[0] for line in compare(THREE, changed)] == [column]


def test_any_nan_equals_any_nan_whatever_its_bits():
    odd = struct.unpack("d", struct.pack("Q", 0xFFF8_0000_0000_0001))[0]
    assert compare(THREE, THREE.with_columns(pl.Series("f", [0.1, 0.0, odd]))) == []


def test_two_columns_with_their_values_exchanged_are_both_found():
    two = pl.DataFrame({"k": ["a"], "x": [1], "y": [2]})
    assert [line[0] for line in compare(two, two.select("k", pl.col("y").alias("x"), pl.col("x").alias("y")))] == [
        "x",
        "y",
    ]


def test_frames_of_other_columns_or_dtypes_are_not_compared():
    for other in (THREE.drop("f"), THREE.select("d", "k", "i", "t", "f"), THREE.cast({"i": pl.Int64})):
        with pytest.raises(ValueError, match="canonicalise both frames first"):
            differences(THREE, other, KEY)


def test_no_rows_against_no_rows_is_no_difference_and_against_some_is_one():
    assert compare(THREE.clear(), THREE.clear()) == []
    assert compare(THREE, THREE.clear()) == ["expected 3 rows, found 0"]


def test_rows_are_matched_by_all_columns_of_the_key():
    two = pl.DataFrame({"a": [1, 1, 2], "b": [2, 1, 1], "v": ["x", "y", "z"]})
    key = ("a", "b")
    assert differences(in_key_order(two, key), in_key_order(two.reverse(), key), key) == []
    swapped = two.with_columns(pl.Series("v", ["y", "x", "z"]))
    assert differences(in_key_order(two, key), in_key_order(swapped, key), key) == [
        "v: 2 of 3 values differ; first at a=1, b=1: expected 'y', found 'x'"
    ]


def test_fidelity_names_every_converted_column_with_its_dtype():
    assert came_back({}) == "exact"
    assert came_back({"k": "Object", "d": "String"}) == "converted: k (Object), d (String)"


WHOLE = pl.DataFrame({"a": [1, 1, 2, None], "b": [0.0, -0.0, math.nan, None], "c": [["x"], [], [None], None]})


@pytest.mark.parametrize(
    ("expected", "actual", "one_missing", "said"),
    [
        (WHOLE, WHOLE[[3, 1, 0, 2]], False, None),  # in any order
        ({"a": [1, 1, 2]}, {"a": [1, 2, 2]}, False, "1 of 3 rows are not there as they should be: values differ in a"),
        (
            {"a": [1, 2], "b": ["x", "y"]},
            {"a": [1, 2], "b": ["y", "x"]},
            False,
            "2 of 2 rows are not there as they should be: their values are in other rows",
        ),
        ({"a": [0.0, 1.0]}, {"a": [-0.0, 1.0]}, False, ""),
        ({"a": [1.0, None]}, {"a": [math.nan, 1.0]}, False, ""),
        ({"a": [1.0, None]}, {"a": [math.nan, 1.0]}, True, None),  # with one mark for missing values
        ({"a": [1.0, None]}, {"a": [0.0, 1.0]}, True, ""),
    ],
)
def test_without_a_key_whole_rows_are_matched_and_counted(expected, actual, one_missing, said):
    found = differences(pl.DataFrame(expected), pl.DataFrame(actual), (), one_missing)
    assert [said in line for line in found] == ([] if said is None else [True])


def test_no_value_is_reported_where_none_may_be() -> None:
    expected, actual = (
        pl.DataFrame({"a": [1, 2], "b": ["secret", "y"]}),
        pl.DataFrame({"a": [1, 2], "b": ["other", "y"]}),
    )
    assert differences(expected, actual, ("a",), with_values=False) == ["b: 1 of 2 values differ"]


STANDING = pl.DataFrame({"x": [0.0, None, float("nan")], "t": ["a", None, "b"]})


@pytest.mark.parametrize(
    ("other", "one_missing", "expected"),
    [
        (STANDING, False, True),
        (STANDING.with_columns(x=pl.Series([-0.0, None, float("nan")])), False, False),
        (STANDING.with_columns(x=pl.Series([0.0, None, None])), False, False),
        (STANDING.with_columns(x=pl.Series([0.0, None, None])), True, True),
        (STANDING.with_columns(t=pl.Series(["a", "", "b"])), False, False),
        (STANDING.reverse(), False, False),
        (STANDING.head(2), False, False),
        (STANDING.rename({"t": "u"}), False, False),
        (STANDING.with_columns(x=pl.Series([0, None, 1])), False, False),
    ],
)
def test_frames_are_equal_as_they_are_only_where_each_value_is_the_one_at_its_place(other, one_missing, expected):
    assert equal_as_they_stand(STANDING, other, one_missing) is expected


@pytest.mark.parametrize(
    ("dtype", "one", "other"),
    [
        (pl.List(pl.Float64), [0.0], [-0.0]),
        (pl.List(pl.Float32), [math.nan], [None]),
        (pl.List(pl.List(pl.Float64)), [[1.0], [-0.0]], [[1.0], [0.0]]),
        (pl.List(pl.List(pl.Int32)), [[1], [2]], [[1, 2]]),
        (pl.List(pl.List(pl.Int32)), [[]], []),
        (pl.List(pl.List(pl.Int32)), [[], [1]], [[1], []]),
        (pl.List(pl.List(pl.String)), [[None]], [[""]]),
        (pl.List(pl.List(pl.String)), [], None),
        (pl.Struct({"x": pl.Float64}), {"x": 0.0}, {"x": -0.0}),
        (pl.Struct({"*": pl.List(pl.Float64)}), {"*": [0.0]}, {"*": [-0.0]}),
        (pl.Struct({"x": pl.Float64}), {"x": None}, None),
        (pl.Struct({"x": pl.Int32}), {"x": None}, None),
    ],
)
@pytest.mark.parametrize("row_key", [("id",), ()])
def test_lists_and_structs_are_equal_where_every_item_is_and_floats_by_their_bits(dtype, one, other, row_key):
    def made(value):
        return pl.DataFrame({"id": [1, 2], "c": pl.Series([value, value], dtype=dtype)})

    assert differences(made(one), made(one), row_key) == []
    assert len(differences(made(one), made(other), row_key)) == 1
