"""A user's columnar files and frames: two readers agree on every value, or the column and the row are named."""

import datetime as dt
import glob
import gzip
import io
import os
import sys
import time
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from harness.datasets.user_data import (
    arrow_types,
    columnar,
    compared,
    compared_cells,
    data,
    json_lines,
    memory,
    reading,
)
from harness.model import LabError
from harness.recommend import script
from tests.commands import one_line

FAR = dt.datetime(9999, 12, 31, 2)
NEAR = dt.datetime(2024, 1, 1, 0, 0, 0, 5)
FRAME = pl.DataFrame(
    {
        "i": [3, 1, None, 2],
        "f": [0.0, 1.5, float("nan"), None],
        "s": ["a", None, "", "ł"],
        "t": [NEAR, None, NEAR, FAR],
        "d": [dt.date(2024, 1, 1), None, dt.date(1, 1, 1), dt.date(9999, 1, 1)],
        "b": [True, None, False, True],
        "l": [[1, None], None, [], [2]],
        "n": [{"x": 1}, {"x": None}, {"x": 2}, None],
    }
)


def program(path: Path, own: data.UserData) -> pl.DataFrame:
    """Return the frame that the program of a file reads."""
    folder = next(parent for parent in path.parents if parent.is_dir())  # a pattern has folders that do not exist
    made: dict[str, Any] = {"glob": glob, "os": os, "__file__": str(folder / "program.py")}
    source = script.Source(path, pattern=own.program.pattern, folder=folder)
    exec(source.constant + "\n" + script.load("polars", own, source, ""), made)
    found = made["load"]()
    assert isinstance(found, pl.DataFrame)
    return found


def content(frame: pl.DataFrame, suffix: str) -> bytes:
    raw = io.BytesIO()
    of_arrow = {"arrow": frame.write_ipc, "arrows": frame.write_ipc_stream}
    write: Any = {"parquet": frame.write_parquet, "csv": frame.write_csv, "ndjson": frame.write_ndjson, **of_arrow}
    write[suffix](raw)
    return raw.getvalue()


def int96(path: Path, moments: list[dt.datetime | pd.Timestamp | None], unit: str = "us") -> Path:
    """Write timestamps as Spark does."""
    written = pa.array(moments, pa.timestamp(unit))
    parquet.write_table(
        pa.table({"id": range(len(moments)), "at": written}), path, use_deprecated_int96_timestamps=True
    )
    return path


def test_timestamps_of_spark_are_those_of_the_file_also_beyond_nanoseconds(tmp_path: Path) -> None:
    moments = [FAR, None, NEAR, dt.datetime(1, 1, 1)]
    path = int96(tmp_path / "a.parquet", moments)
    own = data.from_file(path)
    assert own.frame["at"].to_list() == moments
    assert own.logical_types["at"] == "timestamp"
    assert program(path, own)["at"].to_list() == moments


@pytest.mark.parametrize("moment", [NEAR, FAR])
def test_timestamps_of_int96_with_a_zone_are_refused_for_some_readers_drop_it(
    tmp_path: Path, moment: dt.datetime
) -> None:
    table = pa.table({"at": pa.array([moment], pa.timestamp("us", "Europe/Berlin"))})
    parquet.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    with pytest.raises(
        LabError, match=r'column "at": some readers ignore the time zone of INT96 timestamps; write them as INT64'
    ):
        reading.read(tmp_path / "a.parquet")


def test_timestamps_of_spark_with_nanoseconds_are_kept_where_64_bits_hold_them(tmp_path: Path) -> None:
    table = pa.table({"at": pa.array([1, 10**18 + 1, None], pa.timestamp("ns"))})
    parquet.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    assert data.from_file(tmp_path / "a.parquet").frame["at"].to_physical().to_list() == [1, 10**18 + 1, None]


def test_timestamps_that_no_type_holds_are_refused_with_column_and_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = int96(tmp_path / "a.parquet", [NEAR, FAR])
    right = parquet.read_table

    def one_finer(*given: Any, **options: Any) -> Any:
        """Read as if a timestamp far away had a nanosecond: pyarrow cannot write such a file."""
        table = right(*given, **options)
        if options.get("coerce_int96_timestamp_unit") != "ns":
            return table
        finer = pl.Series(pl.from_arrow(table["at"])).to_physical() + pl.Series([0, 1])
        return table.set_column(table.column_names.index("at"), "at", finer.cast(pl.Datetime("ns")).to_arrow())

    monkeypatch.setattr(parquet, "read_table", one_finer)
    with pytest.raises(LabError, match='column "at", row 1: INT96 timestamps with nanoseconds, and others'):
        reading.read(path)


@pytest.mark.long
@pytest.mark.parametrize(("suffix", "form"), [("parquet", "parquet"), ("arrow", "arrow"), ("arrows", "arrow_stream")])
@pytest.mark.parametrize("rows", [4, 60_000])
def test_a_reader_that_changes_a_value_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, form: str, rows: int
) -> None:
    """The readers compare a large file in pieces, and by the ends and nulls of columns."""
    frame = FRAME if rows == 4 else pl.concat([FRAME] * (rows // 4))
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(content(frame, suffix))
    assert reading.read(path).frame.equals(frame)
    for column in frame.columns:
        shifted = frame.with_columns(pl.col(column).shift(1))
        monkeypatch.setitem(columnar._READ, form, lambda path, shifted=shifted: shifted)
        with pytest.raises(LabError, match=rf'column "{column}", row \d+: two readers read different values'):
            reading.read(path)


@pytest.mark.parametrize(("column", "wrong"), [("i", None), ("i", 2**40), ("s", None)])
def test_a_lost_value_far_from_the_pieces_that_are_compared_is_found_by_the_footer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, wrong: int | None
) -> None:
    frame = pl.DataFrame({"i": range(300_000), "s": ["x"] * 300_000})
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=100_000)
    assert "of 300,000 rows of each column, and the nulls and ends of" in reading.read(tmp_path / "a.parquet").compared
    changed = frame.with_columns(pl.when(pl.col("i") == 150_000).then(wrong).otherwise(column).alias(column))
    monkeypatch.setitem(columnar._READ, "parquet", lambda path: changed)
    with pytest.raises(LabError, match=f'column "{column}", row 150000: two readers'):
        reading.read(tmp_path / "a.parquet")


def test_of_a_file_of_some_mb_a_part_is_decoded_again_and_of_every_type_the_cheapest_column_first(
    tmp_path: Path,
) -> None:
    """Decoding a page of every column costs two fifths of reading such a file; the limit is one fifth."""
    rows, path = 120_000, tmp_path / "a.parquet"
    noise = np.random.default_rng(1)
    floats = {f"f{place}": noise.normal(size=rows) for place in range(6)}
    frame = pl.DataFrame({"l": [[1], None] * (rows // 2), "s": ["a", "b"] * (rows // 2), **floats, "i": range(rows)})
    frame.write_parquet(path)
    file = parquet.ParquetFile(path)
    group = file.metadata.row_group(0)
    sizes = dict(zip(frame.columns, [group.column(at).total_uncompressed_size for at in range(9)], strict=True))
    names = compared.chosen([[group.column(place)] for place in range(9)], file.schema_arrow)
    assert {"l", "s"} <= {*names}
    assert sum(sizes[name] for name in names) < group.total_byte_size / 4
    assert reading.read(path).compared.endswith(f"rows of {len(names)} of 9 columns, and the nulls and ends of columns")


@pytest.mark.parametrize(
    ("more", "said"),
    [({}, "0 of 4 columns"), ({"b": [True, None, False] * 100_000}, "1 of 5 columns")],
    ids=["none", "Booleans"],
)
def test_what_a_footer_does_not_describe_is_decoded_again_up_to_a_part_of_the_file_and_said(
    tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    """Decoding all of it would take as long as reading it."""
    table = pa.table({f"c{place}": range(300_000) for place in range(4)} | more)
    parquet.write_table(table, tmp_path / "a.parquet", write_statistics=False, use_dictionary=False)
    assert reading.read(tmp_path / "a.parquet").compared.endswith(f"and the nulls and ends of {said}")


def test_of_a_file_of_spark_only_the_timestamps_are_read_again_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, right = [], parquet.read_table
    path = int96(tmp_path / "a.parquet", [NEAR, None])
    monkeypatch.setattr(parquet, "read_table", lambda *of, **how: (asked.append(how), right(*of, **how))[1])
    monkeypatch.setattr(compared, "WHOLE", 0)
    assert data.from_file(path).frame["at"].to_list() == [NEAR, None]
    assert [(how["columns"], how.get("coerce_int96_timestamp_unit")) for how in asked[:1]] == [(["at"], "us")]
    assert all(how["columns"] == ["at"] for how in asked)
    assert len(asked) < 3


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize(
    ("width", "rows", "of"),
    [
        *((3, 300_000, "polars"), (20, 120_000, "polars"), (73, 80_000, "polars")),
        *((3, 28_000, "all"), (20, 5_000, "all")),
        *((73, 10, "all"), (73, 200, "all"), (73, 5_000, "all")),
        *(
            (3, 500, "csv"),
            (3, 2_000, "csv"),
            (20, 400, "csv"),
            (20, 1_000, "csv"),
            (20, 5_000, "csv"),
            (3, 20_000, "csv"),
        ),
        *((20, 400, "ndjson"), (20, 5_000, "ndjson"), (3, 20_000, "ndjson")),
    ],
)
def test_to_compare_a_file_costs_less_than_a_fifth_of_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int, rows: int, of: str
) -> None:
    """For some MB, compare with polars alone. For less, compare with all steps that make the file a user's data.

    A second reader takes as long as polars for a small file, because every value of it is compared. The test takes CPU
    time, which a busy machine changes little, and the median of pairs that follow each other at once.
    """
    noise = np.random.default_rng(1)
    columns: list[Any] = [noise.integers(0, 10**9, rows), noise.normal(size=rows)]
    columns += [pl.Series(columns[0]).cast(pl.String), pl.Series(columns[0]).cast(pl.Datetime("us"))]
    frame = pl.DataFrame([pl.Series(f"c{place}", columns[place % min(width, 4)]) for place in range(width)])
    path = tmp_path / f"a.{of if of in ('csv', 'ndjson') else 'parquet'}"
    {"csv": frame.write_csv, "ndjson": frame.write_ndjson}.get(of, frame.write_parquet)(path)
    taken: dict[str, list[float]] = {"polars": [], "compare": [], "all": []}

    def timed(what: str, call: Any) -> Any:
        def made(*given: Any) -> Any:
            before = time.process_time()
            found = call(*given)
            taken[what].append(time.process_time() - before)
            return found

        return made

    monkeypatch.setitem(columnar._READ, "parquet", timed("polars", columnar._READ["parquet"]))
    monkeypatch.setattr(columnar, "_compare", timed("compare", columnar._compare))
    monkeypatch.setattr(compared_cells, "require_same", timed("compare", compared_cells.require_same))
    monkeypatch.setattr(json_lines, "compare", timed("compare", json_lines.compare))
    for _ in range(11):
        timed("all", reading.read if of == "polars" else data.from_file)(path)
    less = [whole - compare for whole, compare in zip(taken["all"], taken["compare"], strict=True)]
    ratios = [
        compare / read for read, compare in zip(taken[of] if of == "polars" else less, taken["compare"], strict=True)
    ]
    assert median(ratios) < 0.2, ratios


@pytest.mark.parametrize(
    ("one", "other"),
    [(0.0, -0.0), (1.0, 1.0 + 2**-52), (1.0, float("nan")), (1.0, None), ([0.0], [-0.0]), (dt.time(1), dt.time(2))],
)
@pytest.mark.parametrize("fixed", [False, True])
def test_values_that_differ_are_distinguished_and_equal_ones_are_not(one: Any, other: Any, fixed: bool) -> None:
    """Alone, and in a list of fixed size."""
    values = [[[one], [one]], [[one], [other]]] if fixed else [[one, one], [one, other]]
    dtype = pl.Array(pl.Series([one]).dtype, 1) if fixed else None
    left, right = (pl.Series(some, dtype=dtype) for some in values)
    assert compared.different(left, right.to_arrow()) == 1
    assert compared.different(left, left.to_arrow()) is None


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows"])
@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["a", "b"])], ids=["categorical", "enum"])
def test_categories_of_polars_are_compared_by_their_strings(tmp_path: Path, dtype: Any, suffix: str) -> None:
    column, path = pl.Series("of", ["b", "a", None, "b"], dtype), tmp_path / f"a.{suffix}"
    path.write_bytes(content(column.to_frame(), suffix))
    assert reading.read(path).frame["of"].cast(pl.String).to_list() == ["b", "a", None, "b"]
    assert compared.different(column, column.to_arrow()) is None
    assert compared.different(column.shift(1), column.to_arrow()) == 0


def test_json_of_parquet_is_a_string(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    duckdb.sql("SELECT 1 AS id, '{\"a\": 1}'::JSON AS doc").write_parquet(str(path))
    own = data.from_file(path)
    assert own.logical_types == {"id": "int32", "doc": "text"}
    assert own.frame["doc"].to_list() == ['{"a": 1}']
    again = data.from_frame(program(path, own))
    assert again.frame.equals(own.frame)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("INTERVAL 1 MONTH", "no frame holds an INTERVAL of Parquet"),
        ("{'a': 1}::VARIANT", "frames have no VARIANT type"),
    ],
)
def test_an_interval_and_a_variant_of_parquet_are_refused_by_name(tmp_path: Path, value: str, said: str) -> None:
    duckdb.sql(f"SELECT 1 AS id, {value} AS odd").write_parquet(str(tmp_path / "a.parquet"))
    with pytest.raises(LabError, match=f'column "odd": {said}'):
        reading.read(tmp_path / "a.parquet")


@pytest.mark.parametrize("nested", [False, True])
def test_an_unknown_zone_is_refused_with_its_column_and_no_panic_is_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], nested: bool
) -> None:
    column = pa.array([NEAR], pa.timestamp("us", "US/Pacific-New"))
    column = pa.ListArray.from_arrays([0, 1], column) if nested else column
    table = pa.table({"at": column})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(LabError, match='column "at": the time zone "US/Pacific-New" is unknown; cast it to UTC'):
        reading.read(tmp_path / "a.parquet")
    with pytest.raises(LabError, match='column "at": the time zone "US/Pacific-New" is unknown'):
        reading.of_memory(table)
    assert capfd.readouterr().err == ""


def test_a_panic_of_rust_is_a_line_and_what_else_is_said_is_kept(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def panics(path: Path) -> pl.DataFrame:
        os.write(2, b"thread panicked at\n")
        raise pl.exceptions.PanicException("not implemented")

    FRAME.write_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(columnar._READ, "parquet", panics)
    with pytest.raises(LabError, match="cannot be read as parquet: not implemented"):
        reading.read(tmp_path / "a.parquet")
    assert capfd.readouterr().err == ""

    def warns(path: Path) -> pl.DataFrame:
        os.write(2, b"a warning\n")
        return FRAME

    far = pd.DataFrame({"a": pd.array(pa.array([2**31 - 1], pa.date32()), pd.ArrowDtype(pa.date32()))})
    with pytest.raises(LabError, match="out-of-range date"):
        reading.of_memory(far)
    assert capfd.readouterr().err == ""
    monkeypatch.setitem(columnar._READ, "parquet", warns)
    reading.read(tmp_path / "a.parquet")
    assert capfd.readouterr().err == "a warning\n"


def test_times_of_day_with_nanoseconds_are_refused_before_anything_runs(tmp_path: Path) -> None:
    whole = pa.array([0, 10**9], pa.time64("ns"))
    parquet.write_table(pa.table({"t": whole}), tmp_path / "a.parquet")
    assert data.from_file(tmp_path / "a.parquet").frame["t"].to_list() == [dt.time(0), dt.time(0, 0, 1)]
    parquet.write_table(pa.table({"t": pa.array([0, 1], pa.int64()).view(pa.time64("ns"))}), tmp_path / "a.parquet")
    with pytest.raises(LabError, match='column "t", row 1: a time of day with nanoseconds'):
        data.from_file(tmp_path / "a.parquet")


@pytest.mark.parametrize(("suffix", "compression"), [("parquet", ""), ("csv", ""), ("csv", ".gz")])
def test_a_folder_a_pattern_and_hive_partitions_are_read(tmp_path: Path, suffix: str, compression: str) -> None:
    for year, code, ids in ((2023, "007", [1, 2]), (2024, "010", [3])):
        folder = tmp_path / "data" / f"year={year}" / f"code={code}"
        folder.mkdir(parents=True)
        raw = content(pl.DataFrame({"id": ids, "s": [f"s{number}" for number in ids]}), suffix)
        (folder / f"part.{suffix}{compression}").write_bytes(gzip.compress(raw) if compression else raw)
        (folder / "_SUCCESS").touch()
    expected = [(1, "s1", 2023, "007"), (2, "s2", 2023, "007"), (3, "s3", 2024, "010")]
    for place in (tmp_path / "data", tmp_path / "data" / "*" / "*" / f"*.{suffix}{compression}"):
        own = data.from_file(place)
        assert own.frame.rows() == expected
        assert own.frame.columns == ["id", "s", "year", "code"]
        assert program(place, own).rows() == expected


@pytest.mark.parametrize(
    "names",
    [
        ["a.csv", "_b.csv", "_temporary/c.csv", ".d.csv"],
        ["my%20key=1/k=9.csv", "my%20key=2/k=8.csv"],
        ["a.csv", "a/b.csv", "a-b/c.csv", "a.d/c.csv"],
        ["id=7/a.csv", "id=8/b.csv"],
    ],
)
def test_a_program_reads_the_files_of_a_folder_that_were_read(tmp_path: Path, names: list[str]) -> None:
    for number, name in enumerate(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"id,x\n{number},x\n")
    own = data.from_file(tmp_path)
    assert own.rows == sum(not name.startswith(("_", ".")) for name in names)
    assert program(tmp_path, own).rows() == own.frame.rows()


def test_files_whose_tables_begin_at_different_lines_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\nid,x\n1,2\n")
    (tmp_path / "b.csv").write_text("id,x\n1,2\n")
    with pytest.raises(LabError, match=r"b\.csv: other columns, encoding or separators"):
        reading.read(tmp_path)


def _broken() -> Any:
    yield pa.record_batch({"a": [1]})
    raise OSError("the network is gone")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: pl.scan_parquet("nowhere.parquet"), "the LazyFrame cannot be collected: .*nowhere.parquet"),
        (lambda: pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), _broken()), "the network is gone"),
        (lambda: duckdb.sql("SELECT error('boom') AS a"), "the relation cannot be read: .*boom"),
        (lambda: pa.table({"": [1]}), "a column has no name; name it"),
        (
            lambda: pa.table({"a": pa.Array.from_buffers(pa.string(), 1, [None, OFFSETS, pa.py_buffer(b"\xff\xfe")])}),
            'column "a": .*UTF8.*; rebuild it',
        ),
        (
            lambda: pa.table({"a": pa.array([[(MOMENT, 1)]], pa.map_(pa.timestamp("ns"), pa.int32()))}),
            'column "a": cannot cast Map key',
        ),
        (lambda: _objects(1.5, True), 'column "a": numbers and Booleans are mixed'),
        (
            lambda: pd.DataFrame({"at": pd.Series([None, MOMENT, AWARE], dtype=object)}),
            'column "at", row 2: timestamps with a time zone and without one in one column',
        ),
        (
            lambda: _objects([AWARE], [MOMENT]),
            'column "a", row 5000: timestamps with a time zone',
        ),
        (
            lambda: _objects({"t": MOMENT}, {"t": AWARE}),
            "row 5000: timestamps with a time zone",
        ),
    ],
)
def test_a_frame_that_cannot_be_read_or_would_change_beyond_the_sample_is_one_line(given: Any, said: str) -> None:
    with one_line(said):
        data.from_memory(given())


MOMENT, AWARE = dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
OFFSETS = pa.py_buffer(np.array([0, 2], "int32"))


def _objects(usual: Any, odd: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": pd.Series([usual] * 5_000 + [odd] + [usual] * 300_000, dtype=object)})


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows", "csv", "ndjson"])
def test_a_path_that_exists_as_it_is_written_is_that_file_and_no_pattern(tmp_path: Path, suffix: str) -> None:
    """Also of the folders of a pattern; a pattern would find the other file."""
    frame = pl.DataFrame({"id": [1, 2], "s": ["a", "b"]})
    for folder, name, rows in (("b[1]", "a[0]*?", frame), ("b1", "a0xx", frame.reverse())):
        path = tmp_path / folder / f"{name}.{suffix}"
        path.parent.mkdir()
        path.write_bytes(content(rows, suffix))
    for place in (tmp_path / "b[1]" / f"a[0]*?.{suffix}", tmp_path / "b[1]", tmp_path / "b[1]" / f"*.{suffix}"):
        own = data.from_file(place)
        assert own.frame.equals(frame)
        assert program(place, own).equals(frame)


@pytest.mark.parametrize("pattern", ["", "**/*.csv"])
def test_a_link_to_a_folder_is_not_followed_by_the_lab_nor_by_its_program(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "data" / "in").mkdir(parents=True)
    (tmp_path / "data" / "in" / "a.csv").write_text("id\n1\n2\n")
    (tmp_path / "data" / "again").symlink_to("in")
    path = tmp_path / "data" / pattern
    own = data.from_file(path)
    assert own.frame["id"].to_list() == [1, 2]
    assert program(path, own).equals(own.frame)


@pytest.mark.parametrize(
    "items",
    [
        pa.array([dt.time(1)] * 3),
        pa.array([MOMENT] * 3, pa.timestamp("us")),
        pa.array([MOMENT] * 3, pa.timestamp("us", "UTC")),
        pa.array([Decimal("1.5")] * 3),
    ],
)
@pytest.mark.parametrize("offsets", [[0, 9, 3], [0, 4, 2], [0, -1, 3]])
@pytest.mark.parametrize("depth", [1, 2])
def test_offsets_that_lie_around_times_and_decimals_are_refused(
    items: pa.Array, offsets: list[int], depth: int
) -> None:
    """A reader would otherwise go beyond the memory of the values."""
    lying = pa.py_buffer(np.array(offsets, "int32"))
    column = pa.Array.from_buffers(pa.list_(items.type), 2, [None, lying], children=[items])
    if depth == 2:
        column = pa.StructArray.from_arrays([column], ["in"])
    with pytest.raises(LabError, match=r'column "a": .*rebuild it'):
        reading.of_memory(pa.table({"a": column}))


def test_files_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"a": ["x"]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(LabError, match=r'b.parquet: column "a" is String, another type \(Int64\) than in .*a.parquet'):
        reading.read(tmp_path)
    (tmp_path / "c.csv").write_text("a\n1\n")
    with pytest.raises(LabError, match=r"files of several forms \(\.csv, \.parquet\); give one"):
        reading.read(tmp_path)
    with pytest.raises(LabError, match="no files of Parquet, CSV, JSON lines or Arrow there"):
        reading.read(tmp_path / "*.nothing")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "csv.gz", "ndjson"])
def test_standard_input_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    frame = pl.DataFrame({"id": [1, 2], "s": ["a", "b"]})
    raw = content(frame, suffix.removesuffix(".gz"))
    given = io.BytesIO(gzip.compress(raw) if suffix.endswith(".gz") else raw)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(given))
    assert reading.read(Path("-")).frame.equals(frame)
    with pytest.raises(LabError, match="standard input is empty"):
        reading.read(Path("-"))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((value, "DuckDB has no .* in Arrow") for value in ("timetz '10:00:00+02'", "'101'::BIT", "1::BIGNUM")),
        *((value, "DuckDB has no .* in Arrow") for value in ("(2::UHUGEINT ** 127)::UHUGEINT", "1::VARIANT")),
        ("{'a': [timetz '10:00:00+02']}", "DuckDB has no TIME WITH TIME ZONE in Arrow"),
        (f"{2**127 - 1}::HUGEINT", r"found a number with more digits than decimal128\(38, 0\) has"),
        *((f"'{sign}infinity'::{of}", "row 0: an infinite") for sign in ("", "-") for of in ("DATE", "TIMESTAMP")),
        ("['infinity'::TIMESTAMPTZ]", "row 0: an infinite date or timestamp"),
    ],
)
def test_what_duckdb_changes_on_its_way_into_arrow_is_refused(value: str, said: str) -> None:
    with pytest.raises(LabError, match=f'column "a".*{said}'):
        reading.of_memory(duckdb.sql(f"SELECT {value} AS a"))


def test_other_values_of_a_relation_of_duckdb_arrive() -> None:
    asked = "SELECT 5::HUGEINT AS a, {'t': [timestamptz '2024-01-01 05:00:00+05']} AS b, date '9999-12-31' AS c"
    at = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert reading.of_memory(duckdb.sql(asked)).rows() == [(Decimal(5), {"t": [at]}, dt.date(9999, 12, 31))]


def test_a_named_index_of_pandas_is_kept_and_one_that_would_be_lost_is_refused() -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    assert reading.of_memory(frame.set_axis(["x", "y"]).rename_axis("who")).columns == ["who", "a"]
    several = pd.MultiIndex.from_tuples([(1, "x"), (2, "y")], names=["n", "who"])
    assert reading.of_memory(frame.set_axis(several)).rows() == [(1, "x", 1), (2, "y", 2)]
    assert reading.of_memory(frame[frame["a"] > 1]).rows() == [(2,)]
    for index, said in (
        (pd.Index(["x", "y"]), r"the index has no name and holds values .*\(frame\.rename_axis"),
        (pd.MultiIndex.from_tuples([(1, 2), (3, 4)]), "a part of the index has no name"),
        (pd.Index([1, 2], name="a"), 'the index "a" and a column have the same name'),
    ):
        with pytest.raises(LabError, match=said):
            reading.of_memory(frame.set_axis(index))


def test_integers_in_an_index_stay_integers_next_to_none() -> None:
    index = pd.Index([2**53 + 1, None], dtype=object, name="id")
    assert reading.of_memory(pd.DataFrame({"a": [1, 2]}, index=index)).rows() == [(2**53 + 1, 1), (None, 2)]


@pytest.mark.parametrize("of", [pa.duration("s"), pa.timestamp("s")])
@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_seconds_that_milliseconds_do_not_count_are_refused(of: pa.DataType, library: str) -> None:
    column = pa.array([1, 2**61], of)
    given = (
        pa.table({"a": column}) if library == "pyarrow" else pd.DataFrame({"a": pd.array(column, pd.ArrowDtype(of))})
    )
    with pytest.raises(LabError, match='column "a", row 1: '):
        reading.of_memory(given)


@pytest.mark.parametrize(
    "wrong",
    [pl.col("i") + 1, pl.col("o").fill_null("y"), pl.col("t").dt.offset_by("1us")],
    ids=["integer", "object", "timestamp"],
)
def test_a_frame_that_arrow_changes_is_refused_with_the_row(monkeypatch: pytest.MonkeyPatch, wrong: pl.Expr) -> None:
    frame = pd.DataFrame(
        {"i": [1, 2], "o": pd.Series(["x", None], dtype=object), "t": pd.to_datetime(["2024", "2025"])}
    )
    right = memory.of_arrow
    monkeypatch.setattr(memory, "of_arrow", lambda table: right(table).with_columns(wrong))
    with pytest.raises(LabError, match=r'column ".", row \d: .* would become'):
        reading.of_memory(frame)


def test_a_row_that_the_reader_of_a_map_loses_is_missed(tmp_path: Path) -> None:
    """pyarrow 26 loses the last row here, because pages have one value."""
    maps = [[], [], [], None, [], None, [("a", None)], [("b", None)], None]
    table = pa.table({"a": pa.array(maps, pa.map_(pa.string(), pa.int64()))})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=2, data_page_size=1)
    with pytest.raises(LabError, match="its footer has 9 rows, and 8 were read"):
        reading.read(tmp_path / "a.parquet")


def test_what_arrow_reads_for_polars_is_compared_with_what_polars_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"i": [1, 2], "m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert reading.read(tmp_path / "a.parquet").frame["i"].to_list() == [1, 2]
    monkeypatch.setitem(columnar._TABLES, "parquet", lambda path: table.set_column(0, "i", pa.array([1, 3])))
    with pytest.raises(LabError, match='column "i", row 1: two readers read different values'):
        reading.read(tmp_path / "a.parquet")


@pytest.mark.parametrize("suffix", ["arrow", ""])
def test_what_polars_itself_makes_wrong_of_arrow_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Decimals of 64 bits in lists are such values, and are refused by their type, too."""
    values = pa.array([[Decimal("36.5"), None]], pa.list_(pa.decimal64(16, 5)))
    table, path = pa.table({"a": values}), tmp_path / "a.arrow"
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    monkeypatch.setattr(arrow_types, "require_known", lambda schema: None)
    with pytest.raises(LabError, match='column "a", row 0: two readers read different values'):
        reading.read(path) if suffix else reading.of_memory(table)
