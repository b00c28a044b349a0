"""What transports that take Arrow do with the pieces of a frame."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from arrow_wire.frames import joined, of_objects, require_names


def address(array):
    return array.buffers()[1].address + array.offset * array.type.byte_width


def test_columns_that_record_batches_have_cut_are_put_together_without_a_copy():
    numbers = pa.array([1, None, 3, 4, 5, 6])
    table = pa.table({"number": numbers, "text": pa.chunked_array([["a", "b"], ["c"], ["d", "e", "f"]])})
    cut = pa.Table.from_batches(table.to_batches())
    assert cut["number"].num_chunks == 3
    found = joined(cut)
    assert found.to_pydict() == table.to_pydict()
    assert found["number"].null_count == 1
    assert [address(piece) for piece in found["number"].chunks] == [address(numbers)]
    assert found["text"].num_chunks == 3  # which are encoded where they are


def slices(*bounds):
    whole = pa.array(np.arange(10))
    return pa.chunked_array([whole.slice(first, end - first) for first, end in bounds])


@pytest.mark.parametrize(
    "column",
    [
        slices((2, 4), (4, 4), (4, 9)),
        slices((4, 9), (2, 4)),
        slices((0, 4), (5, 9)),
        slices((0, 4), (3, 9)),
        pa.chunked_array([pa.array([1, 2]), pa.array([3, 4])]),
        pa.chunked_array([pa.array([1, 2, None]).slice(1, 1), pa.array([1, 2, None]).slice(2, 1)]),
        pa.chunked_array([pa.array([True, False, None]).slice(1, 1), pa.array([True, False, None]).slice(2)]),
        pa.chunked_array([pa.array(["x", "y"]).dictionary_encode(), pa.array(["z", "x"]).dictionary_encode()]),
        pa.chunked_array([pa.array([[1], None]), pa.array([[2, 3]])]),
    ],
    ids=["adjacent", "other order", "gap", "overlap", "others", "nulls", "booleans", "dictionaries", "lists"],
)
def test_every_column_of_several_pieces_keeps_its_values(column):
    found = joined(pa.table({"column": column}))
    assert found["column"].num_chunks == 1
    assert found["column"].to_pylist() == column.to_pylist()
    found.validate(full=True)


def test_names_are_texts_and_each_is_there_once():
    require_names(["a", "b"])
    for names, found in (([], "found none"), ([1], "found int"), (["a", "a"], "found 2")):
        with pytest.raises(ValueError, match=found):
            require_names(names)


@pytest.mark.parametrize(
    "values",
    [
        ["1.25", "-0.50", None, "100"],
        ["1.2", "1.25"],  # more places than the first has
        ["7", "1E+5", "NaN"],
        ["1E+5", "7"],
        ["1.5", "9" * 37],  # more digits than are left for it
        ["9" * 50],
        ["1e-40"],
        [None, None],
        [],
    ],
    ids=str,
)
def test_decimals_in_objects_are_those_that_arrow_finds(values):
    decimals = pd.Series([value and Decimal(value) for value in values], dtype=object)
    found, expected = of_objects(decimals), pa.array(decimals, from_pandas=True)
    assert found.to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("values", [[Decimal("1.5"), "x"], [Decimal("1.5"), True], [Decimal("1.5"), 1.5]], ids=str)
def test_objects_of_two_types_are_refused_as_arrow_refuses_them(values):
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        pa.array(pd.Series(values, dtype=object), from_pandas=True)
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        of_objects(pd.Series(values, dtype=object))
