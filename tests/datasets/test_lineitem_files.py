"""Files of lineitem: reused if intact, else built again, each part once; only the requested ones stay."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.datasets import lineitem
from harness.datasets.lineitem import Layout, files
from harness.datasets.lineitem.layout import Action, most_bytes, plan
from tests.commands import one_line
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


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ((1.5, 2, 0, 1), "scale factor 1.5: choose 0.001 to 1, or a whole number above"),
        ((0.0005, 1, 0, 1), "scale factor 0.0005: choose 0.001 to 1"),
        ((-1, 1, 0, 1), "scale factor -1: choose 0.001 to 1"),
        ((24, 23, 0, 1), "23 parts at scale factor 24: choose at least 24"),
        ((4, 4, 4, 1), "parts 4 to 4: choose from 0 to 3"),
        ((4, 4, 2, 3), "parts 2 to 4: choose from 0 to 3"),
        ((4, 4, -1, 2), "parts -1 to 0: choose from 0 to 3"),
        ((4, 4, 1, 0), "parts 1 to 0: choose from 0 to 3"),
        ((4, 4, 0, 1, 2_047), "row groups of 2,047 rows: choose 2,048 to 1,048,576"),
        ((4, 4, 0, 1, 1_048_577), "row groups of 1,048,577 rows: choose 2,048 to 1,048,576"),
    ],
)
def test_a_layout_that_cannot_be_made_as_asked_is_refused_in_one_line(layout, expected):
    with one_line(expected):
        Layout(*layout)


def test_a_file_name_says_scale_parts_first_and_last_part_and_row_groups():
    assert Layout(24, 24, 0, 8, 300_000).file_name == "lineitem-sf24-parts24-0000-0007-rg300000.parquet"
    assert Layout(0.001, 1, 0, 1, 4_096).file_name == "lineitem-sf0.001-parts1-0000-0000-rg4096.parquet"


def test_a_scale_factor_is_the_same_layout_as_whole_number_and_as_float():
    whole, floating = Layout(24, 24, 0, 1), Layout(24.0, 24, 0, 1)
    assert whole == floating
    assert whole.file_name == floating.file_name


PART, FILE = Layout(4, 4, 0, 1), Layout(4, 4, 0, 2)


@pytest.mark.parametrize(
    ("asked", "there", "steps"),
    [
        ([Layout(4, 4, 2, 1)], [], "generate 2+1"),
        (
            [PART, FILE, Layout(4, 4, 0, 3)],
            [],
            "generate 0+1, generate 1+1, join 0+2, generate 2+1, join 0+3, remove 1+1, remove 2+1",
        ),
        (
            [Layout(4, 4, 2, 2), FILE],
            [],
            "generate 0+1, generate 1+1, join 0+2, remove 0+1, remove 1+1, "
            "generate 2+1, generate 3+1, join 2+2, remove 2+1, remove 3+1",
        ),
        ([FILE], [PART], "generate 1+1, join 0+2, remove 1+1"),
        ([FILE], [FILE], ""),
        (
            [Layout(1, 1, 0, 1, size) for size in (4_096, 122_880, 300_000)],
            [],
            "generate 0+1, join 0+1, join 0+1",
        ),
    ],
    ids=[
        *("a part is no copy", "parts stay until the last file that needs them", "files never need more than one's"),
        *("a part that is there", "a file that is there", "other row groups of the same rows"),
    ],
)
def test_a_plan_generates_each_part_once_and_keeps_what_is_asked_for(asked, there, steps):
    found = [f"{step.action} {step.layout.first_part}+{step.layout.part_count}" for step in plan(asked, there)]
    assert ", ".join(found) == steps


def layouts_of_six_parts():
    ranges = st.tuples(st.integers(0, 5), st.integers(1, 6)).filter(lambda pair: sum(pair) <= 6)
    return st.builds(lambda pair, size: Layout(6, 6, *pair, size), ranges, st.sampled_from([4_096, 300_000]))


@given(asked=st.lists(layouts_of_six_parts(), max_size=8), there=st.sets(layouts_of_six_parts(), max_size=4))
def test_any_plan_ends_with_what_is_asked_for_and_no_more(asked, there):
    files, made = set(there), []
    for step in plan(asked, there):
        if step.action is Action.REMOVE:
            files.remove(step.layout)
            assert step.layout not in there
            assert step.layout not in asked
            continue
        if step.action is Action.JOIN:
            assert set(step.layout.bases) <= files
        assert step.layout not in files
        files.add(step.layout)
        made.append(step.layout)
    assert files == set(asked) | there
    assert len(made) == len(set(made))


def test_the_bytes_of_a_plan_are_those_of_its_fullest_moment():
    side_by_side = plan([FILE, Layout(4, 4, 2, 2)], [])
    # One file is finished, the other is next to its two parts.
    assert most_bytes(side_by_side) == 2 * PART.most_bytes + 2 * FILE.most_bytes
    assert most_bytes([]) == 0
