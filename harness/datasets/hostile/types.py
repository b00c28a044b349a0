"""Types of columns beyond the usual ones: unsigned, 32-bit floats, fixed texts, enums, JSON, and columns of the server.

Postgres has no unsigned type: there the next larger one holds these values, and reading it is nothing new.
"""

from __future__ import annotations

from harness.datasets.hostile.kind import BOTH, ENUM, Kind, Stored, column, one_column

_NOT_UNSIGNED = {"postgres": "no type of Postgres is unsigned: this is a table of an ordinary type"}
_ORDINARY = "the table is an ordinary one"
_TINY = 2.0**-149  # the smallest float of 32 bits above zero
_UNSIGNED = (
    one_column(
        "uint32",
        "unsigned 32-bit integers up to 2^32-1; in Postgres into bigint",
        "uint32",
        dict.fromkeys(BOTH, (0, 2**31, 2**32 - 1)),
        stored={"postgres": Stored({"uint32_value": "bigint"})},
        no_read=_NOT_UNSIGNED,
    ),
    one_column(
        "uint64",
        "unsigned 64-bit integers up to 2^64-1; in Postgres into numeric",
        "uint64",
        dict.fromkeys(BOTH, (0, 2**53 + 1, 2**63, 2**64 - 1)),
        stored={"postgres": Stored({"uint64_value": "numeric"})},
        no_read=_NOT_UNSIGNED,
    ),
)


def _float32(name: str, meaning: str, *values: float) -> Kind:
    return one_column(name, meaning, "float32", dict.fromkeys(BOTH, values))


_FLOATS = (
    _float32(
        "float32",
        "32-bit floats: digits that need 9 places, and the largest",
        0.5,
        0.10000000149011612,  # 0.1 in 32 bits
        16777217 / 3,
        3.4028234663852886e38,
    ),
    _float32("float32_nan", "32-bit floats that are no number", 0.5, float("nan")),
    _float32("float32_infinity", "positive and negative infinity in 32 bits", 0.5, float("inf"), float("-inf")),
    _float32("float32_negative_zero", "the 32-bit float -0.0", 0.5, -0.0, 0.0),
    _float32("float32_denormals", "32-bit floats below the smallest normal one", 0.5, _TINY, -_TINY, 2.0**-127),
)
_FIXED = Kind(
    "padded_text",
    "short texts in a column of fixed length: char(4) fills up with spaces, FixedString(4) with U+0000",
    column("text_value", "ab", "abcd"),
    {"text_value": "text"},
    stored={
        "postgres": Stored({"text_value": "char(4)"}, values={"text_value": ["ab  ", "abcd"]}),
        "clickhouse": Stored({"text_value": "FixedString(4)"}, values={"text_value": ["ab\0\0", "abcd"]}),
    },
)
OF_AN_ENUM = {
    "postgres": Stored({"text_value": ENUM}, enum=("red", "green", "blue")),
    "clickhouse": Stored(
        {"text_value": "Enum8('red' = 1, 'green' = 2, 'blue' = 3)"},
        shown={"text_value": "toString(text_value)"},  # in Arrow an Enum8 is its number
    ),
}
_ENUMS = (
    Kind(
        "enum",
        "texts in an enum whose labels are in no alphabetical order",
        column("text_value", "green", "red", "blue"),
        {"text_value": "text"},
        stored=OF_AN_ENUM,
    ),
    one_column(
        "categories",
        "a frame's categories (Categorical, category) into a column of texts",
        "category",
        dict.fromkeys(BOTH, ("red", "green", "red")),
        stored={
            "postgres": Stored({"category_value": "text"}, {"category_value": "text"}),
            "clickhouse": Stored({"category_value": "Nullable(String)"}, {"category_value": "text"}),
        },
        no_read=dict.fromkeys(BOTH, _ORDINARY),
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
        "JSON documents, not all with the same keys, as texts into a column of type json (Postgres), JSON (ClickHouse)",
        "json",
        dict.fromkeys(BOTH, _DOCUMENTS),
        stored={"postgres": Stored({"json_value": "json"}), "clickhouse": Stored({"json_value": "JSON"})},
    ),
    one_column(
        "jsonb",
        "the same JSON documents in a column of type jsonb",
        "json",
        {"postgres": _DOCUMENTS},
        stored={"postgres": Stored({"json_value": "jsonb"})},
    ),
)
_DOUBLED = {"double_value": [14, -16, 0]}
_OF_THE_SERVER = (
    Kind(
        "generated",
        "a column that the server computes: GENERATED STORED (Postgres), MATERIALIZED (ClickHouse: not in SELECT *)",
        column("int_value", 7, -8, 0),
        {"int_value": "int32"},
        stored={
            "postgres": Stored(
                {"double_value": "integer GENERATED ALWAYS AS (int_value * 2) STORED"},
                {"double_value": "int32"},
                _DOUBLED,
            ),
            "clickhouse": Stored(
                {"double_value": "Nullable(Int32) MATERIALIZED int_value * 2"},
                {"double_value": "int32"},
                _DOUBLED,
                hidden=("double_value",),
            ),
        },
    ),
    Kind(
        "column_default",
        "a column with a default that the frame does not have: DEFAULT 5 (Postgres), int_value * 2 (ClickHouse)",
        column("int_value", 7, -8, 0),
        {"int_value": "int32"},
        stored={
            "postgres": Stored(
                {"double_value": "integer DEFAULT 5"}, {"double_value": "int32"}, {"double_value": [5, 5, 5]}
            ),
            "clickhouse": Stored(
                {"double_value": "Nullable(Int32) DEFAULT int_value * 2"}, {"double_value": "int32"}, _DOUBLED
            ),
        },
        no_read=dict.fromkeys(BOTH, _ORDINARY),
    ),
)
KINDS = (*_UNSIGNED, *_FLOATS, _FIXED, *_ENUMS, *_JSON, *_OF_THE_SERVER)
