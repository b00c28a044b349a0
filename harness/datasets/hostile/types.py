"""Column types beyond the default ones: unsigned, 32-bit floats, fixed strings, enums, JSON, server-set columns."""

from __future__ import annotations

from harness.datasets.hostile.kind import Kind, column, one_column

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
_STRINGS = (
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
KINDS = (*_UNSIGNED, *_FLOATS, *_STRINGS, *_JSON, *_OF_THE_SERVER)
