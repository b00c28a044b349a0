"""Maps, decimals with more digits than polars has, UUIDs, times and bytes in lists become canonical, or are refused."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from harness.check.canonical import NotConvertible, as_pandas, canonicalise
from harness.check.equality import differences
from harness.check.logical_types import map_of, polars_dtype, without_fields

WIDE, MAP = "decimal(50, 2)", map_of("text", "int32")
NINES = "9" * 48 + ".99"
ID = uuid.UUID(int=7)
HOUR = dt.time(23, 59, 59, 999_999)


def polars(*values: Any, dtype: Any = None) -> pl.DataFrame:
    return pl.DataFrame({"c": pl.Series(values, dtype=dtype)})


def pandas(*values: Any, dtype: Any = object) -> pd.DataFrame:
    return pd.DataFrame({"c": pd.Series(list(values), dtype=dtype)})


def arrow(*values: Any, of: Any) -> pa.Table:
    return pa.table({"c": pa.array(values, of)})


KEPT = {
    "decimal: texts": (WIDE, polars(NINES, None, "1.50"), [NINES, None, "1.50"], None),
    "decimal: texts of other places": (WIDE, polars("1.5", "-0", "007"), ["1.50", "0.00", "7.00"], None),
    "decimal: objects": (WIDE, pandas(Decimal(NINES), None, Decimal("-0.00")), [NINES, None, "0.00"], None),
    "decimal: Arrow": (
        WIDE,
        arrow(Decimal("1E+40"), None, of=pa.decimal256(50, 2)),
        ["1" + "0" * 40 + ".00", None],
        ...,
    ),
    "decimal: pandas from Arrow": (
        WIDE,
        pandas(Decimal(NINES), None, dtype=pd.ArrowDtype(pa.decimal256(50, 2))),
        [NINES, None],
        "decimal256(50, 2)[pyarrow]",
    ),
    "decimal: those of polars": (WIDE, polars(Decimal("1.50")), ["1.50"], "Decimal(precision=38, scale=2)"),
    "map: polars": (
        MAP,
        polars({"a": 1, "b": None}, {}, None, dtype=polars_dtype(MAP)),
        [{"a": 1, "b": None}, {}, None],
        None,
    ),
    "map: dicts": (MAP, pandas({"a": 1, "b": None}, {}, None), [{"a": 1, "b": None}, {}, None], None),
    "map: pairs": (MAP, pandas([("b", 2), ("a", 1)]), [{"b": 2, "a": 1}], "object of list"),
    "map: longer integers": (
        MAP,
        polars({"a": 1}, dtype=pl.Map(pl.String, pl.Int64)),
        [{"a": 1}],
        "Map(String, Int64)",
    ),
    "uuids: bytes": ("array(uuid)", polars([ID.bytes, None], []), [[str(ID), None], []], "List(Binary)"),
    "uuids: objects": ("array(array(uuid))", pandas([[ID, None]], []), [[[str(ID), None]], []], None),
    "uuids: texts": ("array(uuid)", polars([str(ID)]), [[str(ID)]], None),
    "times: objects": ("array(time)", pandas([HOUR, None], []), [[HOUR, None], []], None),
    "bytes: texts": ("array(binary)", polars(["é", None]), [["é".encode(), None]], "List(String)"),
    "bytes: objects": ("array(binary)", pandas([b"\0\xff", None]), [[b"\0\xff", None]], None),
}


@pytest.mark.parametrize(("logical", "frame", "values", "dtype"), KEPT.values(), ids=KEPT)
def test_what_came_becomes_canonical_and_other_types_are_named(
    logical: str, frame: Any, values: Any, dtype: Any
) -> None:
    canonical, converted = canonicalise(frame, {"c": logical})
    assert canonical["c"].to_list() == values
    assert canonical["c"].dtype == polars_dtype(logical)
    if dtype is not ...:  # of Arrow it is that of what polars was given
        assert converted == ({} if dtype is None else {"c": dtype})


@pytest.mark.parametrize(
    ("logical", "frame"),
    [
        (WIDE, polars("1.234")),
        (WIDE, polars("1" * 49)),
        (WIDE, polars("NaN")),
        (WIDE, polars(0.1)),
        (MAP, pandas([("a", 1), ("a", 2)])),
        (MAP, polars({"a": 1})),
        (MAP, polars('{"a": 1}')),
        (MAP, polars({"a": 1.5}, dtype=pl.Map(pl.String, pl.Float64))),
        ("array(uuid)", polars([7])),
        ("array(time)", polars([dt.timedelta(hours=1)])),
    ],
)
def test_what_would_be_changed_is_refused(logical: str, frame: Any) -> None:
    with pytest.raises(NotConvertible, match=r"^c: "):
        canonicalise(frame, {"c": logical})


def test_pandas_has_decimals_and_dicts_of_them() -> None:
    frame = pl.DataFrame({"d": [NINES, None], "m": pl.Series([{"a": 1}, None], dtype=polars_dtype(MAP))})
    found = as_pandas(frame, {"d": WIDE, "m": MAP})
    assert found["d"].tolist() == [Decimal(NINES), None]
    assert found["m"].tolist() == [{"a": 1}, None]


def test_entries_of_a_map_are_compared_in_their_order_and_floats_by_their_bits() -> None:
    def rows(*maps: dict[str, float | None]) -> pl.DataFrame:
        return pl.DataFrame({"id": [1, 2], "m": pl.Series(maps, dtype=pl.Map(pl.String, pl.Float64))})

    wanted = rows({"a": -0.0, "b": None}, {})
    for key in (("id",), ()):
        assert differences(wanted, rows({"a": -0.0, "b": None}, {})[::-1], key) == []
        for other in ({"a": 0.0, "b": None}, {"b": None, "a": -0.0}, {"a": -0.0}):
            assert differences(wanted, rows(other, {}), key) != []


def test_names_of_fields_in_maps_are_hidden() -> None:
    assert without_fields('array(map(["text", "nested({\\"secret\\": \\"int32\\"})"]))') == (
        'array(map(["text", "nested({\\"field_1\\": \\"int32\\"})"]))'
    )
