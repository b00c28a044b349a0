"""Own data of maps, UUIDs in lists and decimals of over 38 digits: read, refused, hidden, and read by a program."""

from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from harness.check.equality import differences
from harness.datasets.user_data import data, reading
from harness.datasets.user_data.losses import undeclared
from harness.model import LabError
from tests.datasets.user_files import loaded, written

IDS = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16), None, b"\xff" * 16], pa.binary(16)))
WIDE = pa.array([Decimal("-0.05"), None, Decimal("9" * 74)], pa.decimal256(76, 2))
TABLE = pa.table(
    {
        "counts": pa.array([[("a", 1), ("b", None)], [], [("é", 2)]], pa.map_(pa.string(), pa.int64())),
        "ids": pa.ListArray.from_arrays([0, 2, 2, 3], IDS),
        "deep": pa.ListArray.from_arrays([0, 1, 1, 2], pa.ListArray.from_arrays([0, 2, 3], IDS)),
        "wide": WIDE,
        "fits": pa.array([Decimal("-0.05"), None, Decimal("9" * 36)], pa.decimal256(76, 2)),
    }
)
LOGICAL_TYPES = {
    "counts": 'map(["text", "int64"])',
    "ids": "array(uuid)",
    "deep": "array(array(uuid))",
    "wide": "decimal(76, 2)",
    "fits": "decimal(38, 2)",
}
NO_ID, LAST_ID = "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_they_are_read_and_a_program_reads_them_too(suffix: str, tmp_path: Path) -> None:
    path = written(TABLE, tmp_path / f"rows.{suffix}")
    own = data.from_file(path)
    assert own.logical_types == LOGICAL_TYPES
    assert undeclared(own.logical_types).keys() == {"counts", "ids", "deep", "wide"}
    assert own.frame.to_dicts() == [
        {
            "counts": {"a": 1, "b": None},
            "ids": [NO_ID, None],
            "deep": [[NO_ID, None]],
            "wide": "-0.05",
            "fits": Decimal("-0.05"),
        },
        {"counts": {}, "ids": [], "deep": [], "wide": None, "fits": None},
        {
            "counts": {"é": 2},
            "ids": [LAST_ID],
            "deep": [[LAST_ID]],
            "wide": "9" * 74 + ".00",
            "fits": Decimal("9" * 36),
        },
    ]
    assert data.from_frame(reading.of_memory(TABLE)).frame.equals(own.frame)
    for library in ("polars", "pandas"):
        frame = loaded(library, own, path)
        if library == "pandas":
            assert [type(value) for value in (frame["counts"][0], frame["wide"][0])] == [dict, Decimal]
            continue
        assert differences(own.frame, frame.cast({"deep": own.frame.schema["deep"]}), ()) == []


def test_numbers_of_a_query_are_of_as_many_digits_as_they_have() -> None:
    texts = pa.array(["1" * 40, "0.123456789012", None], pa.string())
    asked = pa.table({"n": pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "numeric", "PostgreSQL"), texts)})
    own = data.from_frame(reading.of_memory(asked))
    assert own.logical_types == {"n": "decimal(52, 12)"}
    assert own.frame["n"].to_list() == ["1" * 40 + "." + "0" * 12, "0.123456789012", None]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["1", "NaN"], 'column "n", row 1: a decimal is NaN or infinity; make it null'),
        (["1" * 77], 'column "n": a decimal has 77 digits, and at most 76 fit; round it'),
        (["0." + "1" * 40, "1" * 40], 'column "n": a decimal has 80 digits, and at most 76 fit'),
    ],
)
def test_what_is_no_such_decimal_is_refused(texts: list[str], said: str) -> None:
    opaque = pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "numeric", "PostgreSQL"), pa.array(texts))
    with pytest.raises(LabError, match=said):
        data.from_frame(reading.of_memory(pa.table({"n": opaque})))


def test_without_names_fields_of_structs_in_maps_have_none_either() -> None:
    secret = pl.Map(pl.String, pl.List(pl.Struct({"secret": pl.Int64})))
    own = data.from_frame(pl.DataFrame({"m": pl.Series([{"a": [{"secret": 1}]}, {}], dtype=secret)}), names=False)
    assert "secret" not in str(own.logical_types)
    assert own.frame["column_1"].to_list() == [{"a": [{"field_1": 1}]}, {}]
    assert own.with_names().frame["m"].to_list() == [{"a": [{"secret": 1}]}, {}]
