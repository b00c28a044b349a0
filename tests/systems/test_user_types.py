"""Own data of hostile types: the reference client, the tuned transports and verification on real engines."""

import datetime as dt
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from arrow_wire import UnsupportedType

from harness import registry
from harness.check.canonical import NotConvertible, as_pandas, canonicalise
from harness.check.equality import differences
from harness.datasets.user_data import data
from harness.datasets.user_data.data import UserData
from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import References
from harness.lab.tables import Tables
from harness.machine.variables import namespace
from tests.calls import call

KEY = bytes(32)
TUNED = {"postgres": "postgres.psycopg", "clickhouse": "clickhouse.http_client"}
DURATIONS = pl.Series([0, None, 1, -1, -86_400_000_000, 2**63 - 1, 1 - 2**63], dtype=pl.Int64).cast(pl.Duration("us"))
_1900 = -2_208_988_800 * 10**9
MOMENTS = pl.Series([1, None, 0, -1, 1_748_000_000_123_456_789, _1900 + 1, 2**63 - 1], dtype=pl.Int64)
PAIRS = pl.Series([[[1, 2], [3, None]], None, [], [[None]], [[2**31 - 1], [-1]]], dtype=pl.List(pl.List(pl.Int32)))
WORDS = pl.Series([[["a", "NULL"], ['"', "\\,{}"]], [["", None]], [], [["é\n\t' "]]], dtype=pl.List(pl.List(pl.String)))
FLOATS = pl.Series([[[-0.0, 0.1], [float("inf"), 5e-324]], []], dtype=pl.List(pl.List(pl.Float64)))
CUBES = pl.Series([[[[1], [2]], [[3], [4]]], [], [[[-(2**63)]]]], dtype=pl.List(pl.List(pl.List(pl.Int64))))
RAGGED = pl.Series([[[1, 2], [], [None]], [], [[]], [[2**31 - 1], [-(2**31), 0]]], dtype=pl.List(pl.List(pl.Int32)))
DAYS = pl.Series([[dt.date(2000, 1, 1), None], [dt.date(1900, 1, 1)], [], [dt.date(2299, 12, 31)]])
STRUCTS = pl.Series(
    [
        {"x": 1, 'a "b`': "é", "of": [{"in": -0.0}, {"in": None}]},
        {"x": None, 'a "b`': None, "of": []},
        {"x": -(2**63), 'a "b`': "", "of": [{"in": 5e-324}]},
    ]
)
PRICES = pl.Series([["0.01", None], [], ["9" * 28 + "." + "9" * 10, "-0.0000000001"]]).cast(pl.List(pl.Decimal(38, 10)))
_MICROSECONDS = [[0, None], [], [-1, 253_402_300_799_999_999], [-62_135_596_800_000_000]]  # of the years 1 to 9999
_USUAL = [[0, None], [], [-1, 1_748_000_000_123_456], [-2_208_988_800_000_000]]  # of those from 1900 to 2299
TIMES, FAR_TIMES = (
    pl.Series(one, dtype=pl.List(pl.Int64)).cast(pl.List(pl.Datetime("us"))) for one in (_USUAL, _MICROSECONDS)
)
INSTANTS, FAR_INSTANTS = (one.cast(pl.List(pl.Datetime("us", "UTC"))) for one in (TIMES, FAR_TIMES))
RAW = pl.Series([b"\0\xff", None, b"", b"ab", b"\\x61", b"\xc3\x28", "é".encode()])
BYTES = pl.Series([[0, 255], [None], []], dtype=pl.List(pl.UInt8))
LARGEST = pl.Series([[2**64 - 1, None], [], [2**53 + 1]], dtype=pl.List(pl.UInt64))
PAIRED = pl.Series([[["1.50", None], ["-2.25", "0.00"]], []]).cast(pl.List(pl.List(pl.Decimal(9, 2))))
MEETINGS = pl.Series([[[0, None], [1, -1]], []], dtype=pl.List(pl.List(pl.Int64))).cast(
    pl.List(pl.List(pl.Datetime("us", "UTC")))
)
MEASURED = pl.DataFrame(
    {
        "n": pl.Series([2**64 - 1, None], dtype=pl.UInt64),
        "price": pl.Series(["0.01", None]).cast(pl.Decimal(12, 2)),
        "at": pl.Series([1, None]).cast(pl.Datetime("us")),
        "prices": pl.Series([["1.50", None], []]).cast(pl.List(pl.Decimal(9, 2))),
    }
).to_struct()
UUIDS = pl.Series([[bytes(16), None], [], [b"\xff" * 16, bytes(range(16))]], dtype=pl.List(pl.Binary))
UUIDS = UUIDS.ext.to(pl.Extension("arrow.uuid", UUIDS.dtype))  # as they are read from Arrow
HOURS = pl.Series([dt.time(0), None, dt.time(23, 59, 59, 999_999)])
OPENED = pl.Series([[dt.time(0), None], [], [dt.time(23, 59, 59, 999_999)]])
CHUNKS = pl.Series([[b"\0\xff", None], [], [b"", b"\\x61", "é".encode()]])
SHIFTS = pl.Series([[[dt.time(9), None], [dt.time(17), dt.time(18)]], []])
PARTS = pl.Series([[[b"\0\xff", None], [b'"\\', b""]], []])
WIDE = pl.Series(["-0.05", None, "9" * 74 + ".99", "0.00"]).ext.to(pl.Extension("arrow.opaque", pl.String(), "numeric"))
COUNTS = pl.Series([{"a": 1, "b": None}, {}, {"é'\\": -(2**63)}], dtype=pl.Map(pl.String, pl.Int64))
RATES = pl.Series([{7: [0.1, None]}, {}, {-1: []}], dtype=pl.Map(pl.Int32, pl.List(pl.Float64)))
BOTH = pl.Series([{"t": dt.time(9), "b": b"\xff"}, {"t": None, "b": None}])
# The values that a column of each type holds at its worst, and an expression of SQL that changes one of them a little.
HOSTILE = {
    ("postgres", "duration"): (DURATIONS, "value + interval '1 microsecond'"),
    ("postgres", "months are no days"): (DURATIONS[[0, 1]], "interval '1 month' - interval '30 days'"),
    ("clickhouse", "timestamp_ns"): (
        MOMENTS.cast(pl.Datetime("ns")),
        "toDateTime64('1970-01-01 00:00:00.000000002', 9, 'UTC')",
    ),
    ("clickhouse", "timestamp_tz_ns"): (
        MOMENTS.cast(pl.Datetime("ns", "UTC")),
        "toDateTime64('1970-01-01 00:00:00.000000002', 9, 'UTC')",
    ),
    ("postgres", "array(array(int32))"): (PAIRS, "ARRAY[[1, 2], [3, 4]]"),
    ("postgres", "items in another order"): (PAIRS, "ARRAY[[1], [2], [3], [NULL]]::integer[]"),
    ("postgres", "other dimensions"): (PAIRS, "ARRAY[1, 2, 3, NULL]"),
    ("postgres", "array(array(text))"): (WORDS, "ARRAY[['a', NULL], ['\"', '\\,{}']]"),
    ("postgres", "array(array(float64))"): (FLOATS, "ARRAY[[0.0, 0.1], ['Infinity', 5e-324]]"),
    ("postgres", "array(array(array(int64)))"): (CUBES, "ARRAY[[[1, 2]], [[3, 4]]]"),
    ("clickhouse", "array(array(int32))"): (RAGGED, "[[1, 2], [], [0]]"),
    ("clickhouse", "array(array(text))"): (WORDS, "[['a', NULL], ['\"', '\\\\,{}']]"),
    ("clickhouse", "array(array(float64))"): (FLOATS, "[[0.0, 0.1], [inf, 5e-324]]"),
    ("clickhouse", "array(array(array(int64)))"): (CUBES, "[[[1, 2]], [[3, 4]]]"),
    ("postgres", "binary"): (RAW, "'\\x00fe'::bytea"),
    ("clickhouse", "binary"): (RAW, "unhex('00FE')"),
    ("postgres", "array(decimal)"): (PRICES, "ARRAY[0.02, NULL]"),
    ("postgres", "array(timestamp)"): (FAR_TIMES, "ARRAY['1970-01-01 00:00:00.000001', NULL]::timestamp[]"),
    ("postgres", "array(timestamp_tz)"): (FAR_INSTANTS, "ARRAY['1970-01-01 00:00:00.000001+00', NULL]::timestamptz[]"),
    ("postgres", "array(uint8)"): (BYTES, "ARRAY[0, 254]"),
    ("postgres", "array(uint64)"): (LARGEST, "ARRAY[18446744073709551614, NULL]"),
    ("postgres", "array(array(decimal))"): (PAIRED, "ARRAY[[1.5, NULL], [-2.25, 0.01]]"),
    ("postgres", "array(array(timestamp_tz))"): (
        MEETINGS,
        "ARRAY[['1970-01-01 00:00Z', NULL], ['1970-01-01 00:00Z', '1970-01-01 00:00Z']]::timestamptz[]",
    ),
    ("clickhouse", "array(decimal)"): (PRICES, "[toDecimal128(0.02, 10), NULL]"),
    ("clickhouse", "array(timestamp)"): (TIMES, "[toDateTime64('1970-01-01 00:00:00.000001', 6, 'UTC'), NULL]"),
    ("clickhouse", "array(timestamp_tz)"): (INSTANTS, "[toDateTime64('1970-01-01 00:00:00.000001', 6, 'UTC'), NULL]"),
    ("clickhouse", "array(uint8)"): (BYTES, "[0, 254]"),
    ("clickhouse", "array(uint64)"): (LARGEST, "[18446744073709551614, NULL]"),
    ("clickhouse", "nested of numbers"): (
        MEASURED,
        "tuple(18446744073709551614, 0.01, toDateTime64('1970-01-01 00:00:00.000001', 6, 'UTC'), [1.5, NULL])",
    ),
    ("postgres", "array(uuid)"): (UUIDS, "ARRAY['00000000-0000-0000-0000-000000000001', NULL]::uuid[]"),
    ("clickhouse", "array(uuid)"): (UUIDS, "[toUUID('00000000-0000-0000-0000-000000000001'), NULL]"),
    ("clickhouse", "time"): (HOURS, "toTime64('00:00:00.000001', 6)"),
    ("postgres", "array(time)"): (OPENED, "ARRAY['00:00:00.000001', NULL]::time[]"),
    ("clickhouse", "array(time)"): (OPENED, "[toTime64('00:00:00.000001', 6), NULL]"),
    ("postgres", "array(array(time))"): (SHIFTS, "ARRAY[['09:00', NULL], ['17:00', '18:00:00.000001']]::time[]"),
    ("postgres", "array(binary)"): (CHUNKS, "ARRAY['\\x00fe', NULL]::bytea[]"),
    ("clickhouse", "array(binary)"): (CHUNKS, "[unhex('00FE'), NULL]"),
    ("postgres", "array(array(binary))"): (PARTS, "ARRAY[['\\x00fe', NULL], ['\\x225c', '']]::bytea[]"),
    ("postgres", "decimal of 76 digits"): (WIDE, "-0.06"),
    ("clickhouse", "decimal of 76 digits"): (WIDE, "-toDecimal256('0.06', 2)"),
    ("clickhouse", "map"): (COUNTS, "map('a', 1, 'b', 0)"),
    ("clickhouse", "entries in another order"): (COUNTS, "map('b', NULL, 'a', 1)"),
    ("clickhouse", "map of lists"): (RATES, "map(7, [0.2, NULL])"),
    ("clickhouse", "nested of bytes"): (BOTH, "tuple(toTime64('09:00', 6), unhex('FE'))"),
    ("clickhouse", "array(date)"): (DAYS, "[toDate32('1969-12-31'), NULL]"),
    ("clickhouse", "nested"): (STRUCTS, "tuple(1, 'é', [tuple(0.0), tuple(NULL)])"),
}
_OTHERS = (
    r'column "value": its values are not of one type'  # Arrow takes objects for signed integers, dicts for structs
)
_NO_UTF8 = 'column "value": a string is not UTF-8'  # a String can have any content
_LENGTHS = r"value: .*Duration.* does not convert to"  # which a Time64 is of up to 999 hours
_TOO_WIDE = 'column "value": polars holds at most 38 digits'
# The values that tuned transports refuse or read as another type, by the frame that they write or read.
UNSUPPORTED = {
    ("array(uint64)", "write pandas"): _OTHERS,
    ("nested of numbers", "write pandas"): _OTHERS,
    ("map", "write pandas"): 'column "value": .* does not fit Map.*; make lists of it',
    ("entries in another order", "write pandas"): 'column "value": .* does not fit Map.*; make lists of it',
    ("map of lists", "write pandas"): _OTHERS,
    ("postgres decimal of 76 digits", "write polars"): 'column "value": .* does not fit numeric',
    ("clickhouse decimal of 76 digits", "read polars"): _TOO_WIDE,
    **{("clickhouse " + name, "read"): _NO_UTF8 for name in ("binary", "array(binary)", "nested of bytes")},
    **{("clickhouse " + name, "read"): _LENGTHS for name in ("time", "array(time)")},
}


def marked(system: str, name: str, *more: str) -> Any:
    """Return a case; lists of lists and of all but a few types run only at night."""
    at_night = name.startswith("array(") and name not in ("array(decimal)", "array(uuid)", "array(array(text))")
    case = "-".join((system, name, *more)).replace(" ", "_")
    return pytest.param(system, name, *more, id=case, marks=pytest.mark.long if at_night else ())


EACH = pytest.mark.parametrize(("system", "name"), [marked(*one) for one in HOSTILE])
MATCHED = {"by key": (1, ["id"]), "by a unique column": (1, []), "order-free": (2, [])}  # how often a row, and the key
COMPARED = [
    marked(*one, how) for one in HOSTILE for how in MATCHED if how == "by key" or one[1] in ("duration", "nested")
]


@dataclass(frozen=True)
class Made:
    """Data with the tables of one database."""

    system: str
    user_data: UserData
    tables: Tables
    lab: EmbeddedLab

    def change(self, table: str, value: str) -> None:
        """Change the first value in a table."""
        full = f"{namespace()}.{table}"
        statement = {
            "postgres": f"UPDATE {full} SET value = {value} WHERE id = 0",
            "clickhouse": f"ALTER TABLE {full} UPDATE value = {value} WHERE id = 0 SETTINGS mutations_sync = 1",
        }
        self.tables.say(self.system, statement[self.system])

    def differences(self, found: Any, frame: str) -> list[str]:
        """Compare the frame that a transport returned with the data."""
        canonical, converted = canonicalise(found, self.tables.read_logical_types(self.system))
        assert converted == {} or frame == "pandas"  # where a list may be an array of numpy
        return self.tables.differences(canonical, frame)


def numbered(values: pl.Series) -> pl.DataFrame:
    """Return values as a frame of two columns, `id` from 0 and `value`."""
    return pl.DataFrame({"id": pl.Series(range(len(values)), dtype=pl.Int64), "value": values})


def wrong(one: Made, table: str) -> list[str]:
    """Return the differences of a table from the right rows."""
    try:
        return one.tables.differences_in_table(one.system, table)
    except NotConvertible as error:  # which a run calls a mismatch
        return [str(error)]


@pytest.fixture(scope="module")
def references(embedded_lab: EmbeddedLab) -> Iterator[References]:
    opened = References(embedded_lab.endpoints)
    yield opened
    opened.close(lambda system: None)


@pytest.fixture
def made(
    embedded_lab: EmbeddedLab, references: References, tmp_path: Path
) -> Iterator[Callable[[str, pl.DataFrame, list[str]], Made]]:
    opened: list[Made] = []

    def make(system: str, frame: pl.DataFrame, key: list[str]) -> Made:
        user_data = data.from_frame(frame, key)
        dataset = user_data.dataset(tmp_path, user_data.rows, KEY)
        opened.append(
            Made(system, user_data, Tables(references, user_data.specification, dataset, dataset), embedded_lab)
        )
        return opened[-1]

    yield make
    for one in opened:
        one.tables.drop(one.system)


@pytest.mark.long
@pytest.mark.parametrize(("system", "name", "matched"), COMPARED)
def test_the_reference_client_moves_every_value_and_one_that_changes_is_found(
    system: str, name: str, matched: str, made: Callable[..., Made]
) -> None:
    values, changed = HOSTILE[system, name]
    times, key = MATCHED[matched]
    one = made(system, pl.concat([numbered(values)] * times), key)
    table, _ = one.tables.for_read(system)  # which compares every value
    assert one.tables.differences_in_table(system, table) == []
    one.change(table, changed)
    (line,) = wrong(one, table)
    assert "value" in line


def unsupported(system: str, name: str, does: str, library: str) -> str:
    """Return the message of a tuned transport, or about it, if it does not preserve the values of a type."""
    named = [(of, what) for of in (name, f"{system} {name}") for what in (does, f"{does} {library}")]
    return next((UNSUPPORTED[one] for one in named if one in UNSUPPORTED), "")


@pytest.mark.long
@EACH
def test_the_tuned_transports_move_every_value(system: str, name: str, made: Callable[..., Made]) -> None:
    values, _ = HOSTILE[system, name]
    one = made(system, numbered(values), ["id"])
    for library in ("polars", "pandas"):
        frame = (
            one.user_data.frame if library == "polars" else as_pandas(one.user_data.frame, one.user_data.logical_types)
        )
        table, _ = one.tables.for_write(system)
        write = partial(call, registry.one(f"{TUNED[system]}.write_{library}_tuned"), one.lab, frame, table)
        if said := unsupported(system, name, "write", library):
            with pytest.raises(UnsupportedType, match=said):
                write()
            table, _ = one.tables.for_read(system)
        else:
            write()
            assert one.tables.differences_in_table(system, table, library) == []
        read = partial(call, registry.one(f"{TUNED[system]}.read_{library}_tuned"), one.lab, table)
        if said := unsupported(system, name, "read", library):
            with pytest.raises((UnsupportedType, ValueError), match=said):
                one.differences(read(), library)
        else:
            assert one.differences(read(), library) == []


@EACH
def test_the_frames_of_both_libraries_hold_every_value(system: str, name: str) -> None:
    user_data = data.from_frame(HOSTILE[system, name][0].to_frame("value"))
    back, converted = canonicalise(as_pandas(user_data.frame, user_data.logical_types), user_data.logical_types)
    assert differences(user_data.frame, back, ()) == []
    assert converted == {}
