"""Values of every type of Postgres that `arrow_wire` knows, as Arrow arrays in odd layouts."""

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from arrow_wire.postgres_types import ServerType, types
from hypothesis import strategies as st


@dataclass(frozen=True)
class Case:
    """A type of the server by oid and modifier, its name in SQL, Arrow types of arrays for it, and values."""

    sql: str
    oid: int
    arrow_types: tuple[pa.DataType, ...]
    values: st.SearchStrategy[Any]
    modifier: int = -1

    @property
    def server(self) -> ServerType:
        return types([(self.oid, self.modifier)])[0]


def _integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    whole = st.integers(-(10**digits) + 1, 10**digits - 1) | st.integers(-9999, 9999)
    return whole.map(lambda number: Decimal(number).scaleb(-scale, Context(prec=200)))


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
_TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))
_BINARY = (pa.binary(), pa.large_binary(), pa.binary_view())
_MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999))
_MILLISECONDS = _MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))
_SPANS = st.timedeltas(dt.timedelta(days=-100_000), dt.timedelta(days=100_000))
_UUIDS = st.uuids()
_WORDS = st.lists(st.none() | TEXT, max_size=4)
_NUMBERS = st.lists(st.none() | _integers(32), max_size=6)
_PAIRS = st.lists(st.none() | _integers(16), min_size=2, max_size=2)
CASES = (
    Case("bool", 16, (pa.bool_(),), st.booleans()),
    Case("int2", 21, (pa.int16(), pa.int32(), pa.int64()), _integers(16)),
    Case("int2", 21, (pa.uint8(), pa.uint16(), pa.uint64(), pa.int16()), st.integers(0, 255)),
    Case("int4", 23, (pa.int32(), pa.int64()), _integers(32)),
    Case("int8", 20, (pa.int64(),), _integers(64)),
    Case("float4", 700, (pa.float32(), pa.float64()), st.floats(width=32)),
    Case("float8", 701, (pa.float64(),), st.floats()),
    Case("text", 25, _TEXTS, TEXT),
    Case("jsonb", 3802, _TEXTS, st.sampled_from(['{"a": 1}', "[]", "null", '"é"'])),
    Case("bytea", 17, _BINARY, st.binary(max_size=40)),
    Case("uuid", 2950, (pa.string(), pa.large_string(), pa.string_view()), _UUIDS.map(str)),
    Case("date", 1082, (pa.date32(), pa.date64()), st.dates()),
    Case("time", 1083, (pa.time64("us"), pa.time64("ns")), st.times()),
    Case("timestamp", 1114, (pa.timestamp("us"),), _MOMENTS),
    Case("timestamp", 1114, (pa.timestamp("ms"),), _MILLISECONDS),
    Case("timestamptz", 1184, (pa.timestamp("us", "UTC"),), _MOMENTS.map(lambda one: one.replace(tzinfo=dt.UTC))),
    Case("interval", 1186, (pa.duration("us"),), _SPANS),
    Case("numeric(9,4)", 1700, (pa.decimal32(9, 4), pa.decimal128(20, 4)), _decimals(9, 4), (9 << 16 | 4) + 4),
    Case("numeric(18,3)", 1700, (pa.decimal64(18, 3),), _decimals(18, 3), (18 << 16 | 3) + 4),
    Case("numeric(38,10)", 1700, (pa.decimal128(38, 10),), _decimals(38, 10), (38 << 16 | 10) + 4),
    Case("numeric(38,10)", 1700, (pa.decimal256(50, 10),), _decimals(38, 10), (38 << 16 | 10) + 4),
    Case("numeric(76,35)", 1700, (pa.decimal256(76, 35),), _decimals(76, 35), (76 << 16 | 35) + 4),
    Case("int4[]", 1007, (pa.list_(pa.int32()), pa.large_list(pa.int64())), _NUMBERS),
    Case("text[]", 1009, (pa.list_(pa.string()), pa.large_list(pa.string_view())), _WORDS),
    Case("int2[]", 1005, (pa.list_(pa.int16(), 2),), _PAIRS),
)  # fmt: skip


def _sliced(array: pa.Array) -> pa.Array:
    """The array in the middle of a larger one: its offsets and bitmaps do not begin where the buffers do."""
    around = [array.slice(0, 3), array.slice(len(array) // 2)]
    return pa.concat_arrays([around[0], array, around[1]]).slice(len(around[0]), len(array))


def _taken(array: pa.Array) -> pa.Array:
    """The array as a kernel makes it anew; there is none for views."""
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type) or pa.types.is_nested(array.type):
        return array
    return array.take(pa.array(range(len(array)), pa.int64()))


def _of_a_message(array: pa.Array) -> pa.Array:
    """The array as it comes out of an IPC message: all buffers in one, at odd places."""
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([array], ["one"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return pa.ipc.open_stream(sink.getvalue()).read_next_batch().column(0)


LAYOUTS: tuple[Callable[[pa.Array], pa.Array], ...] = (lambda array: array, _sliced, _taken, _of_a_message)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[Case, pa.Array]:
    """A case and an array for it, with nulls, in some layout."""
    case = draw(st.sampled_from(CASES))
    arrow_type = draw(st.sampled_from(case.arrow_types))
    values = draw(st.lists(st.none() | case.values, max_size=30))
    if pa.types.is_dictionary(arrow_type):
        return case, pa.array(values, arrow_type.value_type).dictionary_encode()
    array = pa.array(values, arrow_type)
    return case, draw(st.sampled_from(LAYOUTS))(array)


def shown(values: list[Any]) -> list[Any]:
    """Values as they compare: NaN is NaN, and a uuid its string."""
    return [str(value) if isinstance(value, (float, uuid.UUID)) else value for value in values]
