"""Somebody's own data as files of each form and as frames in memory: read as they stand, or refused."""

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from harness.datasets.own import data, reading
from harness.model import LabError
from harness.recommend import loading


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv", "arrow", "arrows"])
def test_a_file_is_read_whatever_its_form(tmp_path: Path, suffix: str) -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", None], "day": [dt.date(2025, 1, 1), None]})
    path = tmp_path / f"data.{suffix}"
    write = {
        "parquet": frame.write_parquet,
        "csv": frame.write_csv,
        "tsv": lambda file: frame.write_csv(file, separator="\t"),
        "arrow": frame.write_ipc,
        "arrows": frame.write_ipc_stream,
    }
    write[suffix](path)
    assert reading.read(path).equals(frame)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.parquet", b"no such thing", "expected a file of Parquet, CSV or Arrow .* found something else"),
        ("a.parquet", b"PAR1 and no more", "expected parquet, but it cannot be read"),
        ("a.txt", b"a,b\n1,2\n", "found something else"),
        ("a.csv", b"a,a\n1,2\n", 'expected columns of different names in .*, found "a" twice'),
        ("a.csv", b"", "expected csv, but it cannot be read"),
        (None, b"", "found nothing"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, name: str | None, content: bytes, said: str) -> None:
    path = tmp_path / (name or "nowhere.parquet")
    if name:
        path.write_bytes(content)
    with pytest.raises(LabError, match=said):
        reading.read(path)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows"])
def test_two_columns_of_one_name_are_refused_by_their_name_whatever_the_form(tmp_path: Path, suffix: str) -> None:
    table, path = pa.table([[1], [2]], names=["a", "a"]), tmp_path / f"data.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, path)
    else:
        made = ipc.new_file if suffix == "arrow" else ipc.new_stream
        with pa.OSFile(str(path), "wb") as file, made(file, table.schema) as writer:
            writer.write_table(table)
    with pytest.raises(LabError, match=f'expected columns of different names in {path}, found "a" twice'):
        reading.read(path)


def test_frames_in_memory_are_taken_as_they_are() -> None:
    frame = pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    for given in (frame, frame.to_pandas(), frame.to_arrow()):
        assert reading.of_memory(given).to_dicts() == frame.to_dicts()
    with pytest.raises(LabError, match=r"found builtins\.list"):
        reading.of_memory([1, 2])
    with pytest.raises(LabError, match='found "a" twice'):
        reading.of_memory(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(LabError, match='found "a" twice'):
        reading.of_memory(pa.table([[1], [2]], names=["a", "a"]))


def test_uuids_of_arrow_are_uuids() -> None:
    some = uuid.UUID("8b3c1d2e-4f5a-4b6c-9d7e-0123456789ab")
    table = pa.table({"id": pa.array([some.bytes, None], pa.uuid())})
    own = data.from_frame(reading.of_memory(table))
    assert own.kinds == {"id": "uuid"}
    assert own.frame["id"].to_list() == [str(some), None]


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "arrows"])
def test_uuids_of_a_file_are_uuids(suffix: str, tmp_path: Path) -> None:
    some = uuid.UUID("8b3c1d2e-4f5a-4b6c-9d7e-0123456789ab")
    table, path = pa.table({"id": pa.array([some.bytes, None], pa.uuid()), "n": [1, 2]}), tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, path)
    else:
        with (ipc.new_file if suffix == "arrow" else ipc.new_stream)(str(path), table.schema) as writer:
            writer.write_table(table)
    own = data.from_file(path)
    assert own.kinds == {"id": "uuid", "n": "int64"}
    assert own.frame["id"].to_list() == [str(some), None]
    made: dict[str, Any] = {}
    exec(loading.load("polars", own, loading.Source(path)), {"DATA": str(path)}, made)
    assert made["load"]().equals(own.frame)
