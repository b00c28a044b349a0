"""Files of lineitem: reused if intact, else built again, each part once; only the requested ones stay."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest

from harness.datasets import lineitem
from harness.datasets.lineitem import Layout, files
from tests.datasets.user_files import ensure

pytestmark = pytest.mark.process

TINY = Layout(0.001, 1, 0, 1)
SCALE, PARTS = 0.01, 3


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A folder with the tiny file, built once for all tests that damage copies of it."""
    folder = tmp_path_factory.mktemp("once")
    ensure(folder, TINY)
    return folder


@pytest.fixture
def folder(once, tmp_path):
    """A separate folder for the test, with the intact tiny file."""
    return Path(shutil.copytree(once, tmp_path / "lineitem"))


def build(folder, layouts):
    """Build, and return the steps in words."""
    done = []
    lineitem.ensure_all(folder, layouts, done.append)
    return done


def parquet_of(folder):
    return folder / TINY.file_name


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_intact_file_is_reused_as_it_is(folder):
    before = ensure(folder, TINY), parquet_of(folder).stat()
    assert build(folder, [TINY]) == []
    after = ensure(folder, TINY), parquet_of(folder).stat()
    assert after[0] == before[0]
    assert (after[1].st_ino, after[1].st_mtime_ns) == (before[1].st_ino, before[1].st_mtime_ns)
    assert (after[0].rows, after[0].matches, after[0].bytes) == (6_005, 116, after[1].st_size)
    assert after[0].duckdb_version == "1.5.5"


@pytest.mark.long
def test_a_damaged_file_is_built_again(folder):
    good, known = parquet_of(folder).read_bytes(), ensure(folder, TINY)
    parquet_of(folder).write_bytes(good[:-100])
    assert build(folder, [TINY]) == ["building lineitem part 1 of 1"]
    assert parquet_of(folder).read_bytes() == good
    assert ensure(folder, TINY) == known


def test_a_file_under_the_name_of_another_layout_is_not_believed(folder):
    other = Layout(0.001, 2, 0, 1)
    for suffix in (".parquet", ".json"):
        shutil.copy2(parquet_of(folder).with_suffix(suffix), (folder / other.file_name).with_suffix(suffix))
    assert files.find(folder / other.file_name, other) is None


@pytest.mark.long
def test_a_file_of_another_generator_version_is_built_again(folder, monkeypatch):
    monkeypatch.setattr(files, "GENERATOR", files.GENERATOR + 1)
    assert build(folder, [TINY]) == ["building lineitem part 1 of 1"]
    assert build(folder, [TINY]) == []


def test_a_file_that_another_duckdb_wrote_is_reused_and_says_so(folder, monkeypatch):
    monkeypatch.setattr(duckdb, "__version__", "1.6.0")
    assert ensure(folder, TINY).duckdb_version == "1.5.5"


@pytest.mark.long
def test_files_are_built_in_steps_and_only_those_asked_for_stay(tmp_path):
    asked = [Layout(SCALE, PARTS, 0, 3), Layout(SCALE, PARTS, 1, 1), Layout(SCALE, PARTS, 0, 2, 4_096)]
    assert build(tmp_path, asked) == [
        "building lineitem part 1 of 3",
        "building lineitem part 2 of 3",
        f"copying lineitem parts into file 1 of 2: {asked[2].file_name}",
        "building lineitem part 3 of 3",
        f"copying lineitem parts into file 2 of 2: {asked[0].file_name}",
    ]
    parquets = {layout.file_name for layout in asked}
    assert set(names(tmp_path)) == parquets | {name.replace(".parquet", ".json") for name in parquets}


@pytest.mark.long
def test_a_part_asked_for_earlier_is_used_and_kept(tmp_path):
    part, whole = Layout(SCALE, 2, 0, 1), Layout(SCALE, 2, 0, 2)
    first = ensure(tmp_path, part)
    assert build(tmp_path, [whole])[0] == "building lineitem part 1 of 1"
    assert build(tmp_path, [part, whole]) == []
    assert ensure(tmp_path, part) == first


@pytest.mark.long
def test_a_folder_may_have_any_name(tmp_path):
    folder = tmp_path / "it's [a] *?\" name"
    assert ensure(folder, Layout(0.002, 2, 0, 2)).rows == 11_957


@pytest.mark.long
def test_finished_parts_of_a_stopped_build_are_used_by_the_next_one(tmp_path):
    part, whole = Layout(SCALE, PARTS, 0, 1), Layout(SCALE, PARTS, 0, PARTS)
    ensure(tmp_path / "parts", part)
    assert build(tmp_path, [whole])[:2] == ["building lineitem part 1 of 2", "building lineitem part 2 of 2"]
    assert not (tmp_path / "parts").exists()


def test_facts_are_plain_values_that_do_not_say_where_the_file_lies(folder):
    known = lineitem.facts(ensure(folder, TINY))
    assert json.loads(json.dumps(known)) == known
    assert str(folder) not in json.dumps(known)
    assert (known["name"], known["scale_factor"], known["rows"]) == ("lineitem", 0.001, 6_005)
