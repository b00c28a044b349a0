"""How transports that take Arrow handle the pieces of a frame."""

import mmap
import resource
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from arrow_wire import WrongValue, clickhouse_write
from arrow_wire.frames import joined, of_objects, require_names
from arrow_wire.postgres_encoder import Encoder
from arrow_wire.postgres_types import types


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


def test_names_are_strings_and_each_is_there_once():
    require_names(["a", "b"])
    for names, found in (
        ([], "the frame has no columns"),
        ([1], "its name is of int"),
        (["a", "a"], "2 columns have this name"),
    ):
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


@pytest.mark.parametrize("arrow_type", [pa.large_binary(), pa.large_list(pa.int8())], ids=str)
def test_a_row_beyond_4_gb_is_said_and_not_copied(arrow_type):
    size = 5 << 30
    data = pa.py_buffer(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))  # pages that stay untouched
    offsets = pa.py_buffer(np.array([0, 1, size], np.int64))
    if pa.types.is_large_list(arrow_type):
        items = pa.Array.from_buffers(pa.int8(), size, [None, data])
        large = pa.Array.from_buffers(arrow_type, 2, [None, offsets], children=[items])
    else:
        large = pa.Array.from_buffers(arrow_type, 2, [None, offsets, data])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    batch = pa.record_batch({"small": pa.array([1, 2]), "large": large})
    with pytest.raises(WrongValue, match=r'column "large": row 1: .* bytes; a row has at most 4 GB') as caught:
        list(clickhouse_write._slices([batch], 10))
    assert (caught.value.column, caught.value.row) == ("large", 1)
    if pa.types.is_binary(arrow_type):
        with pytest.raises(WrongValue, match=r"row 1: .* of 5,368,709,119 .* is above 1 GB"):
            list(Encoder(["large"], [large], types([(17, -1)])).blocks(None, 0, 2))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_wide_rows_are_cut_into_slices_of_256_mb_and_stay_in_order(monkeypatch):
    monkeypatch.setattr(clickhouse_write, "SLICE_BYTES", 10_000)
    column = pa.array([str(number) * (number % 200) for number in range(2000)])
    slices = list(clickhouse_write._slices([pa.record_batch({"c": column})], 1000))
    assert pa.concat_tables(slices)["c"].combine_chunks().equals(column)
    assert all(one.nbytes < 25_000 for one in slices)
    assert len(slices) > 40
