"""Strings in several arrays: encoded where they are, as the same strings in one are."""

import uuid
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from arrow_wire import arrays
from arrow_wire import clickhouse_native as clickhouse
from arrow_wire.library import Buffer
from arrow_wire.postgres_encoder import Encoder
from arrow_wire.postgres_types import types
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import examples

TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()]
CLICKHOUSE = ["Nullable(String)", "Nullable(FixedString(40))", "Nullable(UUID)", "Nullable(Enum8('' = 0, 'b' = 1))"]
POSTGRES = [25, 17, 2950, 3802]  # text, bytea, uuid, jsonb
TEXTS = (
    st.none() | st.sampled_from(["", "b", "a text beyond the size of a view", str(uuid.UUID(int=3))]) | st.text("éx")
)


@st.composite
def columns(draw: st.DrawFn) -> pa.ChunkedArray:
    """Draw strings in pieces: of one array or of several, from the middle of a longer one, some without a row."""
    arrow_type = draw(st.sampled_from(TYPES))
    texts = draw(st.lists(TEXTS, max_size=60)) * draw(st.sampled_from([1, 20]))
    values = pa.array(texts, pa.string()).cast(arrow_type)
    cuts = draw(st.lists(st.integers(0, len(values)), max_size=12))
    edges = [0, *sorted(cuts), len(values)]
    pieces = [values.slice(first, end - first) for first, end in pairwise(edges)]
    alone = draw(st.lists(st.booleans(), min_size=len(pieces), max_size=len(pieces)))
    return pa.chunked_array(
        [pa.concat_arrays([piece]) if one else piece for piece, one in zip(pieces, alone, strict=True)]
    )


def in_clickhouse(column: arrays.Values, sql_type: str, rows: np.ndarray | range) -> bytes | str:
    try:
        return bytes(clickhouse.Columns([("one", column, sql_type)]).block(clickhouse.Room(), rows))
    except ValueError as error:
        return str(error)


def in_postgres(column: arrays.Values, oid: int, order: np.ndarray | None) -> bytes | str:
    try:
        encoder = Encoder(["one"], [column], types([(oid, -1)]))
        return b"".join(map(bytes, encoder.blocks(order, 0, len(column)))) + encoder.keys(0).tobytes()
    except (TypeError, ValueError) as error:
        return str(error)


@pytest.mark.long
@examples(200)
@given(columns(), st.randoms(use_true_random=False))
def test_they_are_encoded_as_one_array_is(column, random):
    whole = pa.concat_arrays(column.chunks)
    order = np.array(random.sample(range(len(whole)), len(whole)), np.uint64)
    for sql_type in CLICKHOUSE:
        for rows in (range(len(whole)), order):
            assert in_clickhouse(column, sql_type, rows) == in_clickhouse(whole, sql_type, rows)
    for oid in POSTGRES:
        for taken in (None, order):
            assert in_postgres(column, oid, taken) == in_postgres(whole, oid, taken)


@pytest.mark.parametrize("pieces", [2, 255, 256, 257, 3000])
def test_any_number_of_them(pieces):
    column = pa.chunked_array([[f"{number}", None, "x" * number] for number in range(pieces)])
    assert isinstance(arrays.gathered(column), pa.ChunkedArray) == (pieces <= 256)
    whole = pa.concat_arrays(column.chunks)
    rows = np.arange(len(whole), dtype=np.uint64)[::-1].copy()
    assert in_clickhouse(column, "Nullable(String)", rows) == in_clickhouse(whole, "Nullable(String)", rows)
    assert in_postgres(column, 25, rows) == in_postgres(whole, 25, rows)


def test_strings_of_two_pieces_are_not_copied():
    column = pa.chunked_array([["a" * 1000] * 1000, ["b" * 1000] * 1000])
    before = pa.total_allocated_bytes()
    described = arrays.described(arrays.gathered(column))
    assert pa.total_allocated_bytes() - before < 10_000
    assert described.structure.layout == arrays.PIECES


def test_what_is_no_text_becomes_one_array():
    for column in (pa.chunked_array([[1], [2]]), pa.chunked_array([["a"], ["b"]]).dictionary_encode()):
        assert isinstance(arrays.gathered(column), pa.Array)
    assert len(arrays.gathered(pa.chunked_array([], pa.string()))) == 0


@pytest.mark.long
@examples(300)
@given(columns(), st.data())
def test_wrong_places_of_pieces_are_an_error_or_inside(column, data):
    encoder = Encoder(["one"], [column], types([(17 if "binary" in str(column.type) else 25, -1)]))
    structure = encoder._keeps[0].structure
    rows, kept = len(column), []
    for name in data.draw(st.lists(st.sampled_from(["values", "data", "validity"]), max_size=3)):
        size = getattr(structure, name).size
        noise = pa.py_buffer(data.draw(st.binary(min_size=size, max_size=size)))
        setattr(structure, name, Buffer(noise.address, data.draw(st.integers(0, size))))
        kept.append(noise)
    structure.width = data.draw(st.just(structure.width) | st.integers(0, 2**32 - 1))
    structure.length = data.draw(st.just(rows) | st.integers(0, 2 * rows))
    if structure.layout == arrays.PIECES and structure.child_count:
        child = structure.children[data.draw(st.integers(0, structure.child_count - 1))]
        child.length = data.draw(st.just(child.length) | st.integers(0, 2 * rows))
        child.layout = data.draw(st.just(child.layout) | st.integers(0, arrays.PIECES))
    with suppress(ValueError):
        for block in encoder.blocks(None, 0, rows):
            assert len(block) > 0
