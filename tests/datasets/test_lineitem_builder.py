"""The builder of lineitem: rows are the generator's own, in its order; memory is bounded; nothing is left behind."""

import hashlib
import json
import os
import subprocess
import sys
from contextlib import contextmanager

import duckdb
import duckdb_extensions
import pyarrow.parquet as pq
import pytest

from harness.datasets import lineitem
from harness.datasets.lineitem import Layout
from harness.datasets.lineitem.layout import ROWS_PER_SCALE_FACTOR
from tests.datasets.user_files import ensure

pytestmark = [pytest.mark.process, pytest.mark.long]

SCALE, PARTS = 0.02, 3
ROWS = 120_515  # DuckDB's unpartitioned lineitem at scale factor 0.02
WITH_PEAK = """
from harness.datasets.lineitem import builder
builder.main()
import sys
lines = open("/proc/self/status").read().splitlines()
sys.stdout.write(next(line for line in lines if line.startswith("VmHWM")).split()[1])
"""


@pytest.fixture(scope="module")
def generator(tmp_path_factory):
    """DuckDB with its own unpartitioned lineitem at scale factor 0.02."""
    config = {"extension_directory": str(tmp_path_factory.mktemp("extensions"))}
    with duckdb.connect(config=config) as connection:
        duckdb_extensions.import_extension("tpch", con=connection)
        connection.execute("LOAD tpch")
        connection.execute(f"CALL dbgen(sf = {SCALE})")
        yield connection


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lineitem")


@pytest.fixture(scope="module")
def parts(folder):
    """The three parts of scale factor 0.02, a file each."""
    return [ensure(folder, Layout(SCALE, PARTS, part, 1)) for part in range(PARTS)]


@pytest.fixture(scope="module")
def joined(folder, parts):
    """The same rows in one file with row groups of 4,096 rows."""
    return ensure(folder, Layout(SCALE, PARTS, 0, PARTS, 4_096))


@contextmanager
def builder(folder, job, code=("-m", "harness.datasets.lineitem.builder")):
    command = (sys.executable, *code)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(json.dumps({"folder": str(folder)} | job) + "\n")
        process.stdin.flush()
        yield process


def peak_of(folder, job):
    """The peak memory of a builder's process, in bytes."""
    with builder(folder, job, ("-c", WITH_PEAK)) as process:
        answer, kilobytes = process.stdout.read().splitlines()
    assert "error" not in json.loads(answer)
    return int(kilobytes) * 1024


def part_job(scale_factor, parts, part, name="part.parquet"):
    names = {"scale_factor": scale_factor, "parts": parts, "part": part, "name": name}
    return {"generate": names | {"row_group_rows": 300_000}}


def rows_of(files):
    return f"read_parquet({[file.path for file in files]})"


def test_the_parts_together_are_the_unpartitioned_lineitem_and_every_row_is_in_one_part_alone(generator, parts):
    for one, other in (("lineitem", rows_of(parts)), (rows_of(parts), "lineitem")):
        assert generator.execute(f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})").fetchone() == (0,)


def test_a_joined_file_has_the_rows_of_the_unpartitioned_lineitem_in_its_order(generator, joined):
    whole = generator.execute("FROM lineitem").to_arrow_table()
    assert pq.read_table(joined.path).cast(whole.schema).equals(whole)


def test_rows_and_matches_are_what_the_generator_itself_counts(generator, parts, joined):
    known = generator.execute("""
        SELECT count(*), sum((year(l_shipdate) = 1994 AND l_quantity < 24
            AND l_discount IN (0.05, 0.06, 0.07))::INT) FROM lineitem
    """).fetchone()
    assert known[0] == ROWS
    assert (joined.rows, joined.matches) == known
    assert (sum(file.rows for file in parts), sum(file.matches for file in parts)) == known


def test_the_rows_of_a_scale_factor_are_those_of_the_specification(joined):
    assert joined.rows == pytest.approx(ROWS_PER_SCALE_FACTOR * SCALE, rel=0.01)


def test_the_content_id_is_the_same_in_one_file_and_in_many_and_another_for_other_rows(parts, joined):
    ids = [int(file.content_id, 16) for file in parts]
    assert int(joined.content_id, 16) == sum(ids) % 2**64
    assert len({*ids, int(joined.content_id, 16)}) == PARTS + 1


def test_the_content_id_can_be_computed_from_a_file_without_duckdb(tmp_path):
    file = ensure(tmp_path, Layout(0.001, 1, 0, 1))
    strings = ("|".join(map(str, row.values())) for row in pq.read_table(file.path).to_pylist())
    numbers = (int.from_bytes(hashlib.md5(text.encode()).digest()[:8], "little") for text in strings)
    assert f"{sum(numbers) % 2**64:016x}" == file.content_id


@pytest.mark.parametrize(("asked", "rounded"), [(4_096, 4_096), (4_000, 4_096), (30_000, 30_720)])
def test_row_groups_are_as_asked_rounded_up_to_whole_vectors_and_recorded(folder, parts, asked, rounded):
    file = ensure(folder, Layout(SCALE, PARTS, 1, 1, asked))
    footer = pq.read_metadata(file.path)
    sizes = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    assert set(sizes[:-1]) == {rounded}
    assert sizes[-1] <= rounded
    assert (file.row_groups, file.smallest_row_group, file.largest_row_group) == (len(sizes), min(sizes), max(sizes))
    assert file.rows == sum(sizes)


def test_only_where_parts_meet_row_groups_of_a_joined_file_are_uneven(joined):
    footer = pq.read_metadata(joined.path)
    sizes = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    assert sum(size != 4_096 for size in sizes) <= PARTS
    assert max(sizes) < 4_096 + 2_048


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_stays_below_4_gb_whatever_the_scale_factor(tmp_path):
    small, large = (peak_of(tmp_path, part_job(100, parts, 37)) for parts in (2_000, 1_000))  # of 0.05 and of 0.1
    assert large < 0.6e9  # the whole would take 160 GB
    largest_part = small + (large - small) * (1 - 0.05) / 0.05
    assert largest_part < 4e9
    for layout, peak in ((Layout(100, 1_000, 37, 1), large), (Layout(100, 100, 37, 1), largest_part)):
        assert peak < lineitem.needed_memory(tmp_path, [layout]) <= 4e9


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_the_memory_of_joining_does_not_grow_with_the_number_of_rows(tmp_path, parts):
    peaks = []
    for times in (1, 8):
        sources = [file.path for file in parts] * times
        peaks.append(peak_of(tmp_path, {"join": {"sources": sources, "name": "out", "row_group_rows": 20_480}}))
    assert peaks[1] < peaks[0] + 60e6  # the rows are 7 x 16 MB more in memory


def test_a_builder_ends_with_the_process_that_wants_its_file(tmp_path):
    with builder(tmp_path, part_job(1, 1, 0)) as process:
        process.stdin.close()
        assert process.wait(timeout=60) == 1
        assert process.stdout.read() == ""
    assert not (tmp_path / "part.parquet").exists()


def test_an_error_of_the_engine_is_one_line(tmp_path):
    with builder(tmp_path, {"join": {"sources": ["none.parquet"], "name": "out", "row_group_rows": 4_096}}) as process:
        answer = json.loads(process.stdout.read())
    assert "none.parquet" in answer["error"]
    assert "\n" not in answer["error"]


def test_generating_leaves_nothing_in_the_home_directory_nor_next_to_the_file(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    ensure(tmp_path / "data", Layout(0.001, 1, 0, 1))
    assert list(home.iterdir()) == []
    assert sorted(os.listdir(tmp_path / "data")) == [
        "lineitem-sf0.001-parts1-0000-0000-rg300000.json",
        "lineitem-sf0.001-parts1-0000-0000-rg300000.parquet",
    ]
