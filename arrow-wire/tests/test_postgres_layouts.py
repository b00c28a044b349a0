"""Arrow arrays in odd layouts into Postgres' binary rows and back: by `arrow_wire` alone, and through the server."""

import numpy as np
import psycopg
import pyarrow as pa
import pytest
from arrow_wire.postgres_encoder import HEADER, TRAILER, Encoder
from arrow_wire.postgres_reader import COPY, LARGE, OTHER, VIEWS, Decoder, reading
from hypothesis import given
from hypothesis import strategies as st

from fuzzing import examples
from postgres_values import CASES, Case, arrays, shown


def encoded(case: Case, array: pa.Array, order: np.ndarray | None = None) -> bytes:
    encoder = Encoder(["one"], [array], [case.server])
    return b"".join(bytes(block) for block in encoder.blocks(order, 0, len(array)))


def decoded(case: Case, data: bytes, style=VIEWS) -> pa.Array:
    decoder = Decoder(["one"], [reading(case.server, style)], COPY)
    buffer = memoryview(bytearray(data))
    assert decoder.feed(buffer, 0, 1 << 40) == len(data) - 2
    assert decoder.end == OTHER
    (array,) = decoder.take()
    array.validate(full=True)
    return array


@pytest.mark.long
@examples(400)
@given(arrays(), st.sampled_from([VIEWS, LARGE]))
def test_what_is_encoded_and_decoded_is_the_same(made, style):
    case, array = made
    if case.sql == "jsonb":
        return  # in rows of messages it is a string
    found = decoded(case, encoded(case, array) + TRAILER, style)
    assert shown(found.to_pylist()) == shown(
        array.cast(found.type).to_pylist() if case.sql != "text" else array.to_pylist()
    )


@examples(100)
@given(arrays(), st.randoms(use_true_random=False))
def test_rows_in_another_order_are_those_rows(made, random):
    case, array = made
    numbers = random.sample(range(len(array)), len(array))
    order = np.array(numbers, np.uint64)
    moved = pa.concat_arrays([array.slice(number, 1) for number in numbers]) if numbers else array
    assert encoded(case, array, order) == encoded(case, moved)


@pytest.fixture(scope="module")
def server(addresses):
    with psycopg.connect(addresses.postgres, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("SET timezone TO UTC")
        yield connection


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sql)
@examples(6)
@given(data=st.data())
def test_the_server_has_the_values_that_were_sent(case, data, server):
    arrow_type = data.draw(st.sampled_from(case.arrow_types))
    values = data.draw(st.lists(st.none() | case.values, max_size=20))
    plain = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    array = pa.array(values, plain)
    array = array.dictionary_encode() if pa.types.is_dictionary(arrow_type) else array
    server.execute(f"CREATE TEMP TABLE sent (number int GENERATED ALWAYS AS IDENTITY, one {case.sql})")
    try:
        with server.cursor().copy("COPY sent (one) FROM STDIN (FORMAT binary)") as copy:
            copy.write(HEADER + encoded(case, array) + TRAILER)
        # The witness is the server's own reading of the values as strings; a float4 has nine digits.
        texts = [_text(case, value) for value in array.to_pylist()]
        asked = (
            f"SELECT number FROM sent, unnest(%s::text[]) WITH ORDINALITY AS t (text, place) WHERE number = place \
            AND one::text IS DISTINCT FROM t.text::{case.sql.replace('[]', '')}::text"
            if "[]" not in case.sql
            else (
                "SELECT number FROM sent, unnest(%s::text[]) WITH ORDINALITY AS t (text, place) WHERE number = place "
                f"AND one IS DISTINCT FROM t.text::{case.sql}"
            )
        )
        assert server.execute(asked, [texts]).fetchall() == []
        with server.cursor().copy("COPY (SELECT one FROM sent ORDER BY number) TO STDOUT (FORMAT binary)") as copy:
            data_back = b"".join(bytes(part) for part in copy)[len(HEADER) :]
        if case.sql != "jsonb":
            found = decoded(case, data_back)
            assert len(found) == len(array)
            assert encoded(case, found) == encoded(case, array)
    finally:
        server.execute("DROP TABLE sent")


def _text(case: Case, value):
    """Return a value as the string that SQL has for it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    if isinstance(value, list):
        quoted = [
            "NULL" if one is None else '"' + str(one).replace("\\", "\\\\").replace('"', '\\"') + '"' for one in value
        ]
        return "{" + ",".join(quoted) + "}"
    if case.sql == "interval":
        return (
            f"{value.days * 86_400 + value.seconds}.{value.microseconds:06} seconds"
            if value.days >= 0
            else (f"{value.days * 86_400 + value.seconds} seconds {value.microseconds} microseconds")
        )
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)
