"""A user's own data: reading, the types of columns, their values, and refusals."""

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from harness import registry
from harness.check.canonical import as_pandas, canonicalise
from harness.check.equality import differences
from harness.datasets import store
from harness.datasets.examples import EXAMPLES, example
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.user_data import data, mark, reading, values
from harness.datasets.user_data.losses import lost, undeclared, why
from harness.model import Fate, LabError
from harness.systems import SYSTEMS
from tests.datasets.user_files import loaded, written

FRAME = pl.DataFrame(
    {
        "id": [1, 2, 3],
        "small": pl.Series([1, 2, 3], dtype=pl.Int16),
        "price": pl.Series([Decimal("1.50"), None, Decimal("-2.25")], dtype=pl.Decimal(12, 2)),
        "state": pl.Series(["a", "b", "a"], dtype=pl.Enum(["a", "b"])),
        "moment": pl.Series([dt.datetime(2025, 1, 1, 12)] * 3).dt.replace_time_zone("Europe/Berlin"),
        "labels": [["x"], [], ["y", None]],
        "ok": [True, None, False],
        "nothing": [None, None, None],
        "raw": [b"a", b"", b"\x00"],
    }
)


def test_columns_become_logical_types_and_keep_their_values() -> None:
    own = data.from_frame(FRAME)
    assert own.logical_types == {
        "id": "int64",
        "small": "int16",
        "price": "decimal(12, 2)",
        "state": "category",
        "moment": "timestamp_tz",
        "labels": "array(text)",
        "ok": "boolean",
        "nothing": "text",
        "raw": "binary",
    }
    assert own.frame["moment"].to_list() == [dt.datetime(2025, 1, 1, 11, tzinfo=dt.UTC)] * 3
    for name in ("id", "small", "price", "labels", "ok", "raw"):
        assert own.frame[name].to_list() == FRAME[name].to_list()


@pytest.mark.long
@pytest.mark.parametrize("name", [*EXAMPLES, "all logical types"])
def test_a_canonical_frame_goes_through_pandas_and_back(name: str) -> None:
    own = data.from_frame(FRAME if name == "all logical types" else example(name, 500, 1))
    back, converted = canonicalise(as_pandas(own.frame, own.logical_types), own.logical_types)
    assert differences(own.frame, back, (), one_missing=True) == []
    assert converted == {}


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_timestamps_beyond_those_of_python_go_through_pandas_next_to_a_null(zone: str | None) -> None:
    values = pl.Series([2**63 - 1, None, 1 - 2**63, 2**62], dtype=pl.Int64).cast(pl.Datetime("us", zone))
    own = data.from_frame(values.to_frame("at"))
    back, converted = canonicalise(as_pandas(own.frame, own.logical_types), own.logical_types)
    assert back["at"].to_physical().to_list() == values.to_physical().to_list()
    assert converted == {}


def test_tables_have_the_types_of_the_columns_and_are_nullable_where_there_are_nulls() -> None:
    own = data.from_frame(FRAME.drop("labels"), ["id"])
    made = {name: system.tables.definition(own.specification, "keyed") for name, system in SYSTEMS.items()}
    assert made == {
        "postgres": 'CREATE TABLE {table} ("id" bigint NOT NULL, "small" smallint NOT NULL, "price" numeric(12, 2), '
        '"state" text NOT NULL, "moment" timestamptz NOT NULL, "ok" boolean, "nothing" text, "raw" bytea NOT NULL, '
        'PRIMARY KEY ("id"))',
        "clickhouse": "CREATE TABLE {table} (`id` Int64, `small` Int16, `price` Nullable(Decimal(12, 2)), "
        "`state` LowCardinality(String), `moment` DateTime64(6, 'UTC'), `ok` Nullable(Bool), "
        "`nothing` Nullable(String), `raw` String) ENGINE = MergeTree() ORDER BY (`id`)",
    }


@pytest.mark.parametrize(
    ("column", "kinds"),
    [
        (["", "x"], {"empty_text"}),
        (["a\tb"], {"tab"}),
        (["a\nb", None], {"newline", "nulls", "null_text"}),
        (['say "hi"'], {"quotes"}),
        (["a\\b"], {"backslash"}),
        ([r"\N"], {"backslash", "backslash_n"}),
        (["a,b"], {"comma"}),
        ([" a"], {"spaces"}),
        (["NULL", "x"], {"null_words"}),
        (["007", "1"], {"digits"}),
        (["007", "x"], set()),
        (["a\0b"], {"nul_character"}),
        (["100 %"], {"placeholders"}),
        (["\U0001f98a"], {"unicode"}),
        (["é"], set()),
        ([0.5, float("nan")], {"nan"}),
        ([0.5, float("-inf")], {"infinity"}),
        ([0.0, -0.0], {"negative_zero"}),
        ([0.5, 5e-324], {"denormals"}),
        ([0.1 + 0.2], {"float_digits"}),
        ([0.5, 0.25], set()),
        ([2**53 + 1, None], {"nulls", "int64_limits", "int64_beside_null"}),
        ([7, None], {"nulls"}),
        ([True, False], {"booleans"}),
        ([dt.date(2025, 1, 1)], {"dates"}),
        ([[1, 2]], {"arrays"}),
        ([Decimal("1.5")], {"decimals"}),
    ],
)
def test_hostile_values_are_found(column: list[Any], kinds: set[str]) -> None:
    own = data.from_frame(pl.DataFrame({"a": [*column, *column]}))
    assert set(own.found) == kinds
    assert all(where == ("a",) for where in own.found.values())


NOON, IN_UTC = dt.datetime(2024, 1, 15, 12), dt.datetime(2024, 1, 15, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (NOON, {"timestamps_elsewhere"}),
        (IN_UTC, {"timestamps_tz_elsewhere"}),
        ([NOON], {"timestamps_elsewhere"}),
        ({"at": NOON, "timestamp": 1}, {"timestamps_elsewhere"}),
        ([{"at": [IN_UTC], "then": NOON}], {"timestamps_elsewhere", "timestamps_tz_elsewhere"}),
        ({"timestamp": 1}, set()),
        (dt.date(2024, 1, 15), set()),
    ],
)
def test_timestamps_at_any_depth_are_such_as_a_zone_may_move(value: Any, kinds: set[str]) -> None:
    found = data.from_frame(pl.DataFrame({"a": [value, value]})).found
    assert {kind for kind in found if kind.endswith("_elsewhere")} == kinds


def test_hostile_names_are_found() -> None:
    own = data.from_frame(pl.DataFrame({"a b": [1, 2], "order": [1, 2], "ID": [1, 2], "id": [1, 2], "a.b": [1, 2]}))
    assert own.found == {
        "name_space": ("a b",),
        "name_capitals": ("ID",),
        "name_case": ("ID", "id"),
        "name_keyword": ("order",),
        "name_dot": ("a.b",),
    }


def test_every_kind_that_is_looked_for_is_a_hostile_kind() -> None:
    looked_for = {*values._STRINGS, *values._FLOATS, *values._FLOATS_32, *values._NAMES, *values.OF_TYPES.values()}
    assert looked_for | values.EXTREMES <= KINDS.keys()


def test_without_names_columns_are_numbered_everywhere() -> None:
    own = data.from_frame(pl.DataFrame({"salary": [1, 2], "na me": ["", "x"]}), ["salary"], names=False)
    assert (own.logical_types, own.key) == ({"column_1": "int64", "column_2": "text"}, ("column_1",))
    assert own.found == {"empty_text": ("column_2",), "name_space": ("column_2",)}
    assert "salary" not in repr(own) + repr(own.specification)


def test_names_that_were_hidden_come_back_for_their_owner() -> None:
    frame = pl.DataFrame({"column_2": [1, 2], "column_1": ["", "x"], "when": [dt.date(2026, 1, 1)] * 2})
    named, hidden = data.from_frame(frame, ["column_2"]), data.from_frame(frame, ["column_2"], 1, names=False)
    again = hidden.with_names()
    assert (again.logical_types, again.key, again.found) == (named.logical_types, named.key, named.found)
    assert again.frame.equals(named.sample(1).frame)
    assert named.with_names() is named


def test_a_sample_is_the_same_each_time_in_the_order_of_the_rows() -> None:
    own = data.from_frame(pl.DataFrame({"a": range(1_000)}))
    some = own.sample(100).frame["a"].to_list()
    assert len(some) == 100
    assert some == sorted(some) == own.sample(100).frame["a"].to_list()
    assert own.sample(2_000) is own


def test_the_mark_of_the_rows_in_results_is_recognised_here_and_cannot_be_guessed(tmp_path: Path) -> None:
    own, key = data.from_frame(pl.DataFrame({"who": ["Smith", "Jones"]})), mark.key_in(tmp_path / "here")
    here = own.dataset(tmp_path, 2, key).content_hash
    batches = iter(own.frame.to_arrow().to_batches())
    assert here != store.content_hash(batches)  # a reader can make this hash by guessing the rows
    assert here == own.dataset(tmp_path, 2, mark.key_in(tmp_path / "here")).content_hash
    assert here != own.dataset(tmp_path, 2, mark.key_in(tmp_path / "elsewhere")).content_hash
    assert here != data.from_frame(pl.DataFrame({"who": ["Smith", "James"]})).dataset(tmp_path, 2, key).content_hash


def test_the_key_is_for_its_owner_alone_and_made_again_where_it_is_damaged(tmp_path: Path) -> None:
    key, path = mark.key_in(tmp_path), tmp_path / mark.FILE
    assert (len(key), path.stat().st_mode & 0o777) == (32, 0o600)
    path.write_bytes(b"")
    assert len(mark.key_in(tmp_path)) == 32
    path.unlink()
    path.mkdir()
    with pytest.raises(LabError, match=r"cannot keep .*own-data\.key: .*set LAB_STATE_DIR"):
        mark.key_in(tmp_path)


def test_a_table_of_a_sample_holds_all_rows() -> None:
    """The winner's program moves all rows, and the sample may lack their nulls or far dates."""
    days = [dt.date(2025, 1, 1)] * 500 + [dt.date(1930, 1, 1)]
    frame = pl.DataFrame({"n": [*range(500), None], "day": days}).with_row_index("id")
    sample = data.from_frame(frame, rows=5)
    assert (sample.frame["n"].null_count(), sample.frame["day"].min()) == (0, dt.date(2025, 1, 1))
    made = SYSTEMS["clickhouse"].tables.definition(sample.without_names().specification, "keyed")
    assert "`column_2` Nullable(Int64)" in str(made)
    assert "`column_3` Date32)" in str(made)


@pytest.mark.parametrize(
    ("frame", "key", "said"),
    [
        (pl.DataFrame({"a": []}), (), "the data has no rows"),
        (pl.DataFrame(), (), "the data has no columns"),
        (pl.DataFrame({"": [1]}), (), "a column has no name; name it"),
        (pl.DataFrame({"a\0b": [1]}), (), r"column 'a\\x00b': no database takes U\+0000 in a name; rename"),
        (
            pl.DataFrame({"a": [{"x": dt.timedelta(1)}]}),
            (),
            'column "a": no table of a database holds Struct.*unnest it',
        ),
        (pl.DataFrame({"a": [[[dt.timedelta(1)]]]}), (), 'column "a": no table of a database holds List'),
        (
            pl.DataFrame({"a": pl.Series([None, 2_000, -1], dtype=pl.Duration("ns"))}),
            (),
            'column "a", row 2: a duration has nanoseconds; round it to microseconds',
        ),
        (
            pl.DataFrame({"a": pl.Series([0, 2**62], dtype=pl.Duration("ms"))}),
            (),
            'column "a", row 1: a duration is out of range; leave it out',
        ),
        (pl.DataFrame({"a": [1, 1]}), ("a",), "--key a: not unique, 1 rows repeat"),
        (pl.DataFrame({"a": [1, None]}), ("a",), '--key "a": has nulls'),
        (pl.DataFrame({"a": [1]}), ("b",), 'no column for --key "b". Choose from: a'),
        (pl.DataFrame({"a": [0.5]}), ("a",), '--key "a": a key cannot be of the type float64'),
    ],
)
def test_what_no_table_holds_is_refused(frame: pl.DataFrame, key: tuple[str, ...], said: str) -> None:
    with pytest.raises(LabError, match=said):
        data.from_frame(frame, key)


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
    strings = pa.array(["1" * 40, "0.123456789012", None], pa.string())
    asked = pa.table({"n": pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "numeric", "PostgreSQL"), strings)})
    own = data.from_frame(reading.of_memory(asked))
    assert own.logical_types == {"n": "decimal(52, 12)"}
    assert own.frame["n"].to_list() == ["1" * 40 + "." + "0" * 12, "0.123456789012", None]


@pytest.mark.parametrize(
    ("strings", "said"),
    [
        (["1", "NaN"], 'column "n", row 1: a decimal is NaN or infinity; make it null'),
        (["1" * 77], 'column "n": a decimal has 77 digits, and at most 76 fit; round it'),
        (["0." + "1" * 40, "1" * 40], 'column "n": a decimal has 80 digits, and at most 76 fit'),
    ],
)
def test_what_is_no_such_decimal_is_refused(strings: list[str], said: str) -> None:
    opaque = pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "numeric", "PostgreSQL"), pa.array(strings))
    with pytest.raises(LabError, match=said):
        data.from_frame(reading.of_memory(pa.table({"n": opaque})))


def test_without_names_fields_of_structs_in_maps_have_none_either() -> None:
    secret = pl.Map(pl.String, pl.List(pl.Struct({"secret": pl.Int64})))
    own = data.from_frame(pl.DataFrame({"m": pl.Series([{"a": [{"secret": 1}]}, {}], dtype=secret)}), names=False)
    assert "secret" not in str(own.logical_types)
    assert own.frame["column_1"].to_list() == [{"a": [{"field_1": 1}]}, {}]
    assert own.with_names().frame["m"].to_list() == [{"a": [{"secret": 1}]}, {}]


WITH_NULLS = data.from_frame(pl.DataFrame({"id": [1, 2], "who": ["a", None], "city": [None, "b"]}))
WITH_PRICES = data.from_frame(
    pl.DataFrame({"id": [1, 2], "price": pl.Series([Decimal("1.50")] * 2, dtype=pl.Decimal(9, 2))})
)
ONE_ROW = data.from_frame(pl.DataFrame({"id": [1]}))


def losing(**lossy: str) -> Any:
    return replace(registry.one("postgres.psycopg.write_polars_copy_text"), lossy=lossy)


@pytest.mark.parametrize(
    ("lossy", "own", "kind", "reason"),
    [
        *(
            ({"nulls": fate}, WITH_NULLS, "nulls", f'{fate}: {KINDS["nulls"].meaning} (column "who" and 1 more)')
            for fate in (Fate.CHANGED, Fate.REFUSED, Fate.HANGS, Fate.CRASHES)
        ),
        ({"decimals": Fate.REFUSED}, WITH_PRICES, "decimals", 'unsupported: decimal(9, 2) (column "price")'),
        ({"one_row": Fate.CHANGED}, ONE_ROW, "one_row", f"changed: {KINDS['one_row'].meaning}"),  # of no column
    ],
)
def test_a_transport_that_loses_what_is_there_is_out_and_the_reason_names_the_columns(
    lossy: dict[str, str], own: data.UserData, kind: str, reason: str
) -> None:
    assert lost(losing(**lossy), own) == kind
    assert why(losing(**lossy), kind, own) == reason


@pytest.mark.parametrize("lossy", [{}, {"tab": Fate.CHANGED, "nan": Fate.REFUSED}])
def test_a_transport_that_loses_nothing_that_is_there_stays(lossy: dict[str, str]) -> None:
    assert lost(losing(**lossy), WITH_NULLS) == ""


def test_the_first_kind_that_is_lost_is_the_reason_in_the_order_of_all_kinds() -> None:
    both = data.from_frame(pl.DataFrame({"who": ["a\tb", None]}))
    assert list(both.found) == [kind for kind in KINDS if kind in both.found]
    assert lost(losing(tab=Fate.CHANGED, nulls=Fate.CHANGED), both) == next(iter(both.found))
    assert lost(losing(tab=Fate.CHANGED), both) == "tab"


@pytest.mark.parametrize(
    ("kind", "usual", "far"),
    [
        ("dates", pl.Series([dt.date(2025, 1, 1)]), pl.Series([dt.date(1, 1, 1)])),
        ("decimals", pl.Series([Decimal("12.5")]), pl.Series([Decimal("1" * 20)])),
        ("uint64", pl.Series([1], dtype=pl.UInt64), pl.Series([2**63], dtype=pl.UInt64)),
    ],
)
def test_what_changes_extremes_of_a_type_loses_nothing_of_usual_values_and_what_refuses_the_type_does(
    kind: str, usual: pl.Series, far: pl.Series
) -> None:
    of_usual, of_far = (data.from_frame(column.to_frame("a")) for column in (usual, far))
    assert lost(losing(**{kind: Fate.CHANGED}), of_usual) == ""
    assert lost(losing(**{kind: Fate.CHANGED}), of_far) == kind
    assert lost(losing(**{kind: Fate.REFUSED}), of_usual) == kind


def test_types_that_no_kind_of_values_is_about_are_undeclared() -> None:
    logical_types = {
        "a": "array(int32)",
        "b": "array(text)",
        "c": "array(array(int32))",
        "d": "duration",
        "e": "timestamp",
    }
    assert undeclared({**logical_types, "f": "timestamp_ns", "g": "int8", "h": "time"}) == {
        "b": "array(text)",
        "c": "array(array(int32))",
        "d": "duration",
        "f": "timestamp_ns",
        "h": "time",
    }
