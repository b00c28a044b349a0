"""The kinds of values, each with the few rows that show it; everything else in these rows is ordinary.

A kind is as narrow as a loss can be. For example, empty strings are in rows without nulls, and nulls in rows without
empty strings. A transport that confuses the two then fails only at the one that it changes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal

from harness.datasets.hostile.kind import ORDINARY, PLAIN, Kind, Rows, column, one_column
from harness.datasets.hostile.names import NAMES
from harness.model import Scalar

# Column types beyond the default ones: unsigned, 32-bit floats, fixed strings, enums, JSON, server-set columns.

_ORDINARY = "the table is an ordinary one"
_TINY = 2.0**-149  # the smallest positive 32-bit float
_UNSIGNED = (
    one_column("uint32", "unsigned 32-bit integers up to 2^32-1", "uint32", (0, 2**31, 2**32 - 1)),
    one_column("uint64", "unsigned 64-bit integers up to 2^64-1", "uint64", (0, 2**53 + 1, 2**63, 2**64 - 1)),
)


def _float32(name: str, meaning: str, *values: float) -> Kind:
    return one_column(name, meaning, "float32", values)


_FLOATS = (
    _float32(
        "float32",
        "32-bit floats: digits that need 9 places, and the largest",
        0.5,
        0.10000000149011612,  # 0.1 in 32 bits
        16777217 / 3,
        3.4028234663852886e38,
    ),
    _float32("float32_nan", "32-bit floats that are not numbers", 0.5, float("nan")),
    _float32("float32_infinity", "positive and negative infinity in 32 bits", 0.5, float("inf"), float("-inf")),
    _float32("float32_negative_zero", "the 32-bit float -0.0", 0.5, -0.0, 0.0),
    _float32("float32_denormals", "32-bit floats below the smallest normal one", 0.5, _TINY, -_TINY, 2.0**-127),
)
_STRING_TYPES = (
    Kind(
        "padded_text",
        "short strings in a column of fixed length, which fills them up",
        column("text_value", "ab", "abcd"),
        {"text_value": "text"},
        into={"text_value": "padded_text"},
    ),
    Kind(
        "enum",
        "strings in an enum whose labels are in no alphabetical order",
        column("text_value", "green", "red", "blue"),
        {"text_value": "text"},
        into={"text_value": "label"},
    ),
    one_column(
        "categories",
        "a frame's categories (Categorical, category) into a column of strings",
        "category",
        ("red", "green", "red"),
        into={"category_value": "text"},
        no_read=_ORDINARY,
    ),
)
_DOCUMENTS = (
    '{"a":1,"b":"x"}',
    """{"a":2,"b":"é \\"it's\\" \\\\ \\n"}""",
    '{"c":[1,2],"d":{"e":1.5}}',
)
_JSON = (
    one_column(
        "json",
        "JSON documents, not all with the same keys, as strings into a column of documents",
        "json",
        _DOCUMENTS,
        into={"json_value": "json"},
    ),
    one_column(
        "jsonb",
        "the same JSON documents in a column of the other type for them, where there are two",
        "json",
        _DOCUMENTS,
        into={"json_value": "jsonb"},
    ),
)
_OF_THE_SERVER = (
    Kind(
        "generated",
        "a column that the server computes",
        column("int_value", 7, -8, 0),
        {"int_value": "int32"},
        into={"double_value": "computed"},
        made={"double_value": [14, -16, 0]},
    ),
    Kind(
        "column_default",
        "a column with a default that the frame does not have",
        column("int_value", 7, -8, 0),
        {"int_value": "int32"},
        into={"double_value": "defaulted"},
        made={"double_value": [5, 5, 5]},
        no_read=_ORDINARY,
    ),
)
OF_TYPES = (*_UNSIGNED, *_FLOATS, *_STRING_TYPES, *_JSON, *_OF_THE_SERVER)


# Values that their column cannot hold: a write must be refused, whatever the server does.


def _beyond(name: str, meaning: str, logical: str, narrow: str, values: Iterable[object] | None) -> Kind:
    """Return a kind whose table column, of the type `narrow`, cannot hold all of the values."""
    return one_column(name, meaning, logical, values, beyond={f"{logical}_value": narrow})


RANGES = (
    _beyond(
        "int64_beyond_int32",
        "64-bit integers beyond 32 bits (2^31, 2^40) into a column of 32 bits",
        "int64",
        "int32",
        (7, 2**31, 2**40),
    ),
    _beyond(
        "uint32_beyond_int32",
        "unsigned 32-bit integers from 2^31 into a signed column of 32 bits",
        "uint32",
        "int32",
        (7, 2**31, 2**32 - 1),
    ),
    _beyond(
        "uint64_beyond_int64",
        "unsigned 64-bit integers from 2^63 into a signed column of 64 bits",
        "uint64",
        "int64",
        (7, 2**63, 2**64 - 1),
    ),
    _beyond(
        "negative_into_unsigned",
        "negative integers into an unsigned column",
        "int32",
        "uint32",
        (7, -1, -(2**31)),
    ),
    _beyond(
        "fraction_into_int32",
        "floats with a fraction into a column of integers",
        "float64",
        "int32",
        (1.0, 0.5, -2.5),
    ),
    _beyond(
        "float64_beyond_float32",
        "floats too large for 32 bits into a column of 32-bit floats",
        "float64",
        "float32",
        (0.5, 1e300),
    ),
    _beyond("dates_beyond", "dates before the first and after the last that their column holds", "date", "date", None),
    _beyond("text_too_long", "a string that is longer than its column", "text", "short_text", ("abcd", "abcdef")),
    Kind(
        "unknown_label",
        "a string that is not a label of its enum",
        column("text_value", "red", "purple"),
        {"text_value": "text"},
        beyond={"text_value": "label"},
        reason="an enum has its labels only",
    ),
)


# Frame columns that go into a table column of another type, as often happens by accident.
#
# The right result is the server's own cast of such a column (INSERT ... SELECT). If the server cannot cast it, a
# refusal is right, and so is a client-side cast that gives another server's result. Every value here survives its
# cast; `ranges` has values that do not.


def _cast(logical: str, into: str, values: Sequence[Scalar], made: Sequence[Scalar], meaning: str = "") -> Kind:
    """Return the cast of a column from one logical type into another: the values, and the expected table values."""
    return one_column(
        f"{logical}_into_{into}",
        meaning or f"{logical} of the frame into a column of {into}",
        logical,
        values,
        into={f"{logical}_value": into},
        made={f"{logical}_value": list(made)},
        no_read="the table is an ordinary one",
    )


_DAYS = [dt.date(2025, 3, 4), dt.date(1970, 1, 1)]
_MIDNIGHTS = [dt.datetime(2025, 3, 4), dt.datetime(1970, 1, 1)]
_TENTH = 0.10000000149011612  # 0.1 in 32 bits
CASTS = (
    _cast("int64", "int32", [7, -8, 2**31 - 1], [7, -8, 2**31 - 1]),
    _cast("int32", "int64", [7, -8, 2**31 - 1], [7, -8, 2**31 - 1]),
    _cast("float64", "int32", [7.0, -8.0, 0.0], [7, -8, 0]),
    _cast("int32", "float64", [7, -8, 0], [7.0, -8.0, 0.0]),
    _cast(
        "float32",
        "float64",
        [0.5, _TENTH],
        [0.5, _TENTH],
        "32-bit floats into a column of 64 bits: the same value, not the same digits",
    ),
    _cast("float64", "decimal", [0.5, 0.1, -3.0], [Decimal("0.5"), Decimal("0.1"), Decimal(-3)]),
    _cast("int32", "text", [7, -8], ["7", "-8"]),
    _cast("text", "int32", ["7", "-8"], [7, -8]),
    _cast("text", "date", ["2025-03-04", "1970-01-01"], _DAYS),
    _cast("date", "timestamp", _DAYS, _MIDNIGHTS),
    _cast("timestamp", "date", _MIDNIGHTS, _DAYS),
    _cast("boolean", "int32", [True, False], [1, 0]),
    _cast("int32", "date", [20151, 0], _DAYS, "32-bit integers into a column of dates: days since 1970"),
    _cast(
        "timestamp",
        "int64",
        [dt.datetime(2025, 3, 4, 5, 6, 7), dt.datetime(1970, 1, 1)],
        [1741064767, 0],
        "timestamps into a column of 64-bit integers: seconds since 1970",
    ),
)


_NO_VALUES = dict.fromkeys(PLAIN)
_INSTANT = dt.datetime(2025, 3, 4, 5, 6, 7, tzinfo=dt.UTC)
_MANY = 10_000  # more than any client samples to infer a type


def _strings(*values: str) -> Rows:
    return column("text_value", *values)


_SHAPES = (
    Kind("one_row", "one ordinary row: a transport that fails here fails at everything", [{}]),
    Kind("zero_rows", "a table without rows", []),
    Kind(
        "nulls",
        "a null in every nullable column, one at a time and in all at once",
        [{}, *({name: None} for name in PLAIN), _NO_VALUES, {}],
    ),
    Kind("null_text", "a null among strings", [{}, {"text_value": None}, {}], {"text_value": "text"}),
    one_column("null_decimal", "a null among decimals", "decimal", [Decimal("1.5"), None, Decimal("-2.25")]),
    one_column("null_instant", "a null among instants", "timestamp_tz", [_INSTANT, None, _INSTANT]),
    Kind(
        "first_10000_null",
        "10,000 rows without any value before the first one with all",
        [_NO_VALUES] * _MANY + [{}],
    ),
)
_STRINGS = (
    Kind("empty_text", "the empty string, which is not null", _strings("", "word", "")),
    Kind("backslash_n", r"the string \N, with which the servers' formats write a null", _strings(r"\N", r"a\Nb")),
    Kind(
        "null_words",
        "words that look like a null: NULL, NA, NaN, None and others",
        _strings("NULL", "null", "NA", "N/A", "<NA>", "NaN", "nan", "None", "NaT", "nil", "#N/A", "-"),
    ),
    Kind("digits", "strings of digits only, some with leading zeros", _strings("007", "1", "10")),
    Kind("tab", "strings with tabs", _strings("a\tb", "\t", "a\t")),
    Kind("newline", "strings with newlines, also at their end", _strings("a\nb", "\n", "a\n")),
    Kind(
        "carriage_return", "strings with carriage returns, with and without newline", _strings("a\rb", "a\r\nb", "a\r")
    ),
    Kind("quotes", "strings with single and double quotes", _strings('a"b', '"a"', '"', "a'b", "'a'", "'", '""')),
    Kind("backslash", "strings with backslashes, also at their end", _strings("a\\b", "a\\", "\\", r"a\tb", r"a\nb")),
    Kind("comma", "strings with commas and semicolons", _strings("a,b", ",", "a;b")),
    Kind("spaces", "strings with spaces at their ends", _strings(" a", "a ", " ", "  ")),
    Kind(
        "placeholders",
        "strings that look like parameters of a query: %, %s, :a, $1, ?, {}",
        _strings("100 %", "%s", "%(a)s", "%%", ":a", "$1", "?", "{}", "{a:UInt8}", "a'; --"),
    ),
    Kind(
        "unicode",
        "4-byte UTF-8, combining marks, right-to-left, and what some take for the end of a line or the start of a file",
        _strings(
            "\U0001f98a \U0001f468\u200d\U0001f469\u200d\U0001f467",
            "e\u0301 and \u00e9",
            "\u05e9\u05dc\u05d5\u05dd \u200fabc",
            "a\u2028b\x85c\x0bd\x0ce",
            "\ufeffa\uffff",
        ),
    ),
    Kind("nul_character", "strings with the character U+0000", _strings("a\0b", "\0", "a\0")),
    Kind("long_text", "a string of a million characters", _strings("é" + "x" * 999_999, "word")),
)
_NUMBERS = (
    Kind("nan", "floats that are not numbers", column("float_value", 0.5, float("nan"))),
    Kind("infinity", "positive and negative infinity", column("float_value", 0.5, float("inf"), float("-inf"))),
    Kind("negative_zero", "the float -0.0", column("float_value", 0.5, -0.0, 0.0)),
    Kind(
        "denormals",
        "floats below the smallest normal one",
        column("float_value", 0.5, 5e-324, -5e-324, 2.225073858507201e-308),
    ),
    Kind(
        "float_digits",
        "floats that need 17 digits, and the largest",
        column("float_value", 0.1 + 0.2, 1 / 3, 1e22, 1e23, 1.7976931348623157e308, 123456789.12345678, 2.0**53 + 2),
    ),
    Kind(
        "late_fraction",
        "10,000 whole floats before the first with a fraction",
        [{"float_value": 1.0}] * _MANY + [{}],
    ),
    Kind("int32_limits", "the limits of 32-bit integers", column("int_value", 2**31 - 1, -(2**31), 0, -1)),
    Kind("int64_limits", "the limits of 64-bit integers", column("bigint_value", 2**63 - 1, -(2**63), 2**53 + 1, -1)),
    Kind(
        "int64_beside_null",
        "a 64-bit integer that no float holds, next to a null",
        column("bigint_value", 2**53 + 1, None, -(2**53) - 1),
    ),
    Kind(
        "nil_uuid",
        "the nil and the max UUID",
        column("uuid_value", "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    ),
)
_TIMES = (
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2025-03-30 02:30:00.000001",
    "2243-01-01 00:00:00.000001",  # microseconds since 1970 that do not survive conversion to a float and back
    "2262-04-12 00:00:00.5",  # beyond the range of nanoseconds in 64 bits
    "0001-01-01 00:00:00",
    "9999-12-31 23:59:59.999999",
)
MOMENTS = [dt.datetime.fromisoformat(text) for text in _TIMES]
_DATES = (
    Kind(
        "dates",
        "around 1970, where calendars changed, and the first and last day with a year of four digits",
        column(
            "date_value",
            *(
                dt.date.fromisoformat(text)
                for text in ("0001-01-01", "1582-10-04", "1582-10-15", "1969-12-31", "1970-01-01", "9999-12-31")
            ),
        ),
    ),
    Kind(
        "far_dates",
        "the first and the last date that a column holds, where those lie beyond the years 1 and 9999",
        None,
        no_frame={"pandas": "datetime64[us] of pandas ends in the year 294247"},
    ),
)
ELSEWHERE = "America/New_York"
# Winter and summer there, and hours that its clocks skip (10 March) or repeat (3 November).
_LOCAL = [
    dt.datetime.fromisoformat(text)
    for text in ("2024-01-15 12:00:00", "2024-07-15 23:30:00", "2024-03-10 02:30:00", "2024-11-03 01:30:00")
]
_BOOLEANS = [True, False, True]
_DECIMALS = [
    Decimal(text)
    for text in ("1.5", "0.1", "0", "-0.0000000001", "1234567890123456789012345678.0123456789", "-9007199254740993")
]
_ARRAYS = [[1, 2, 3], [], [-1], [None, 2147483647], [None]]
_OTHER_TYPES = (
    one_column("booleans", "a column of booleans", "boolean", _BOOLEANS),
    one_column(
        "timestamps",
        "timestamps without a zone, to the microsecond, also of the years 1 and 9999",
        "timestamp",
        MOMENTS,
    ),
    one_column(
        "timestamps_tz",
        "instants (timestamps with a zone), to the microsecond, also of the years 1 and 9999",
        "timestamp_tz",
        [moment.replace(tzinfo=dt.UTC) for moment in MOMENTS],
    ),
    one_column(
        "timestamps_elsewhere",
        f"ordinary timestamps without a zone, where the client is in {ELSEWHERE}",
        "timestamp",
        _LOCAL,
        zone=ELSEWHERE,
        type_of="timestamps",
    ),
    one_column(
        "timestamps_tz_elsewhere",
        f"ordinary instants (timestamps with a zone), where the client is in {ELSEWHERE}",
        "timestamp_tz",
        [moment.replace(tzinfo=dt.UTC) for moment in _LOCAL],
        zone=ELSEWHERE,
        type_of="timestamps_tz",
    ),
    one_column("decimals", "decimals of 38 digits, 10 of them after the point", "decimal", _DECIMALS),
    one_column("arrays", "arrays of integers, empty ones and with nulls among the integers", "array", _ARRAYS),
    one_column("nested", "named tuples of an integer and a string", "nested", [{"a": 1, "b": "x"}, {"a": -1, "b": ""}]),
)
_NAMES = tuple(
    Kind(
        name,
        names.meaning,
        [dict(zip(names.columns, ORDINARY.values(), strict=True))] * 2,
        dict(zip(names.columns, PLAIN.values(), strict=True)),
        tables=names.tables,
    )
    for name, names in NAMES.items()
)
_ALL = (*_SHAPES, *_STRINGS, *_NUMBERS, *_DATES, *_OTHER_TYPES, *RANGES, *OF_TYPES, *CASTS, *_NAMES)
KINDS = {kind.name: kind for kind in _ALL}
