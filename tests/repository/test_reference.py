"""Reference runs: the committed ones are whole and of committed code; which runs may become one; their page."""

import csv
import json
import re
from datetime import datetime
from itertools import pairwise

import pytest

from harness import registry
from harness.docs import reference
from harness.model import LabError, Origin
from harness.results import folder as folders
from harness.results import runs_csv
from harness.results.row import ok_rows
from harness.run import plan
from harness.settings import ROOT
from tests.report.cases import environment, row, run_folder

RUNS = sorted(path.name for path in (ROOT / "results" / "reference").iterdir())
MACHINE = environment()["machine"] | {"host": "vm"}
WRITE = "postgres.psycopg.write_polars_tuned"


@pytest.mark.parametrize("name", RUNS)
def test_every_reference_run_is_in_the_page_of_results_with_its_number_of_ok_runs(name):
    ok = ok_rows(runs_csv.load(ROOT / "results" / "reference" / name / "runs.csv"))
    part = reference.results().partition(f"## {name}: ")[2].partition("\n## ")[0]
    assert f" cases, {len(ok):,} ok runs" in part
    for link in re.findall(r"\]\(\.\./\.\./([^)]+)\)", part):
        assert (ROOT / link).is_file()


@pytest.fixture
def a_run(tmp_path, monkeypatch):
    """Write a run of a suite that began at an hour, of two passes or more; and a checkout to adopt it in."""
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    load = reference.suite_files.load
    monkeypatch.setattr(reference.suite_files, "load", lambda _, name: load(ROOT / "suites", name))

    def write(folder, suite):
        (folder / "report.md").write_text(suite.name)
        (folder / "summary.csv").touch()
        (folder / "pictures").mkdir()
        (folder / "pictures" / "a.svg").touch()

    monkeypatch.setattr(reference.report, "write", write)

    def make(hour=0, suite="scan", passes=2, size="default", select="*", left_out=(), seconds=1.0, missing=0, **facts):
        run_id = f"20260101T{hour:02}0000Z-vm"
        plan = {"suite": suite, "size": size, "select": select, "experiments": [{"name": "e", "left_out": [*left_out]}]}
        known = {"run_id": run_id, "plan": plan | {"passes": passes}, "machine": MACHINE, "runs": 2 * passes}
        known |= {"code": {"commit": "abc", "modified": False}, "calibrations": [{"now": {}, "best": {}, "at": hour}]}
        rows = [
            row(name, seconds=seconds, run_id=run_id, order=order, pass_number=number, **{"started_at": began})
            for number in range(1, passes + 1)
            for order, name in enumerate((WRITE, f"{WRITE}_again"), 2 * number - 1)
            for began in [f"2026-01-01T{hour:02}:{number:02}:00+00:00"]
        ]
        folder = tmp_path / "results" / run_id
        run_folder(folder, rows[: len(rows) - missing], environment(**known | facts))
        (folder / "traces").mkdir(exist_ok=True)
        (folder / "report.html").touch()
        folders.write_trace(folders.trace_path(folder, 3, WRITE), [(0.0, float(hour))])
        return folder

    return make


def test_a_run_becomes_the_reference_with_what_is_small_and_nothing_of_the_one_before(a_run, tmp_path):
    old = tmp_path / "results" / "reference" / "scan" / "pictures" / "old.svg"
    old.parent.mkdir(parents=True)
    old.touch()
    run = a_run()
    place = reference.adopt(run)
    assert place == tmp_path / "results" / "reference" / "scan"
    found = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    trace = f"traces/0003-{WRITE}.csv"
    assert found == ["environment.json", "pictures/a.svg", "report.md", "runs.csv", "summary.csv", trace]
    assert (place / "report.md").read_text() == "scan"
    for name in ("runs.csv", trace):
        assert (place / name).read_bytes() == (run / name).read_bytes()
    assert folders.environment(place) == folders.environment(run)


def test_three_runs_hours_apart_become_one_reference_whose_passes_go_on(a_run):
    runs = [a_run(hour, passes=passes, load_average_at_start=[hour]) for hour, passes in ((4, 2), (0, 2), (2, 1))]
    kept = folders.read(reference.adopt(*runs))
    ids = [f"20260101T{hour:02}0000Z-vm" for hour in (0, 2, 4)]
    assert kept.name == ", ".join(ids)
    assert [(row.run_id, row.pass_number, row.order) for row in kept.rows if row.transport == WRITE] == [
        (ids[0], 1, 1),
        (ids[0], 2, 3),
        (ids[1], 3, 5),
        (ids[2], 4, 7),
        (ids[2], 5, 9),
    ]
    assert (kept.environment["plan"]["passes"], kept.ended) == (5, True)
    assert [one["at"] for one in kept.environment["calibrations"]] == [0, 2, 4]
    assert [one["load_average_at_start"] for one in folders.members(kept.environment)] == [[0], [2], [4]]
    assert [one["plan"]["passes"] for one in folders.members(kept.environment)] == [2, 1, 2]
    assert folders.load_trace(folders.trace_path(kept.folder, 9, WRITE)) == [(0.0, 4.0)]


def test_rows_of_a_run_that_its_environment_does_not_name_are_refused(a_run):
    place = reference.adopt(a_run(0), a_run(2))
    facts = folders.environment(place)
    (place / "environment.json").write_text(json.dumps(facts | {"together": facts["together"][:1]}))
    with pytest.raises(LabError, match="has rows of 2 runs"):
        folders.read(place)


PART = "a reference run has the default size"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"size": "smoke"}, PART),
        ({"select": "parquet.duckdb.*"}, PART),
        ({"suite": "matrix", "passes": 5, "left_out": [WRITE]}, PART),
        ({"code": {"modified": True}}, PART),
        ({"code": {"modified": None}}, PART),
        ({"missing": 1}, "not all of its runs are there; lab run --resume 20260101T000000Z-vm ends it"),
        ({"suite": "matrix", "passes": 4}, "4 passes; a reference run of matrix has at least 5"),
        ({"suite": "matrix", "passes": 5}, "1 of matrix: a reference has at least 3 runs; give --reference for each"),
    ],
)
def test_a_part_of_a_suite_or_changed_code_is_no_reference(a_run, tmp_path, facts, said):
    with pytest.raises(LabError, match=said):
        reference.adopt(a_run(**facts))
    assert not (tmp_path / "results" / "reference").exists()


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"hour": 1}, "20260101T000000Z-vm and 20260101T010000Z-vm began within two hours"),
        ({"suite": "elt"}, "differ in plan"),
        ({"data": [{"name": "lineitem"}]}, "differ in data"),
        ({"python": "3.14.0"}, "differ in python"),
        ({"packages": {"polars": "2.1"}}, "differ in packages"),
        ({"servers": {"postgres": {"version": "19"}}}, "differ in servers"),
        ({"machine": MACHINE | {"cores": 64}}, "differ in machine"),
        ({"sources": {WRITE: "other"}}, f"differ in code of {WRITE}"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(a_run, tmp_path, facts, said):
    with pytest.raises(LabError, match=said):
        reference.adopt(a_run(), a_run(**{"hour": 2} | facts))
    assert not (tmp_path / "results" / "reference").exists()


def test_a_suite_that_takes_the_contenders_of_another_may_have_them_alone(a_run):
    assert folders.read(reference.adopt(a_run(left_out=[WRITE]))).ended


def test_another_commit_and_kernel_do_not_matter_if_the_code_of_the_transports_is_the_same(a_run):
    other = a_run(2, code={"commit": "def", "modified": False}, machine=MACHINE | {"kernel": "7"})
    kept = folders.read(reference.adopt(a_run(), other))
    assert [one["code"]["commit"] for one in folders.members(kept.environment)] == ["abc", "def"]


def test_a_package_that_no_transport_uses_does_not_matter(a_run):
    uses = {name: ["polars"] for name in (WRITE, f"{WRITE}_again")}
    runs = [a_run(hour, packages={"polars": "2.0"} | more, uses=uses) for hour, more in ((0, {"ray": "2"}), (2, {}))]
    assert reference.adopt(*runs)
    with pytest.raises(LabError, match="differ in packages"):
        reference.adopt(*runs, a_run(4, packages={"polars": "2.1"}, uses=uses))


FOLDER = ROOT / "results" / "reference"
NAMES = sorted(path.stem for path in (ROOT / "suites").glob("*.toml"))
each = pytest.mark.parametrize("name", NAMES)


def facts(name):
    return json.loads((FOLDER / name / "environment.json").read_text())


@each
def test_published_figures_have_five_passes_in_three_runs_hours_apart_except_those_of_the_cluster(name):
    runs, passes = (1, 1) if name == "cluster" else (reference.RUNS, reference.PASSES)
    assert len(folders.members(facts(name))) >= runs
    assert facts(name)["plan"]["passes"] >= passes
    begun = {}
    for run in csv.DictReader((FOLDER / name / "runs.csv").open()):
        began = datetime.fromisoformat(run["started_at"])
        begun[run["run_id"]] = min(begun.get(run["run_id"], began), began)
    assert all(later - earlier >= reference.APART for earlier, later in pairwise(sorted(begun.values())))


def test_every_suite_has_a_reference_run_and_nothing_else_is_there():
    assert sorted(path.name for path in FOLDER.iterdir()) == NAMES


@each
def test_it_has_a_row_for_every_case_and_pass_of_its_plan(name):
    """Transports that are newer than the run do not count: a new transport does not require a new reference run."""
    asked = plan.from_facts(facts(name)["plan"])
    assert (asked.suite, asked.size, asked.select) == (name, "default", "*")
    rows = folders.read(FOLDER / name).rows
    found = [(row.transport, row.experiment, row.label, row.pass_number) for row in rows]
    measured = {row.transport for row in rows}
    expected = {
        (case.transport.id, case.experiment, case.label, number)
        for case in plan.cases(asked, registry.select)
        for number in range(1, asked.passes + 1)
        if case.transport.id in measured
    }
    assert set(found) == expected
    assert len(found) == len(expected)
    published = {entry.id for entry in registry.select("*") if entry.origin is Origin.PUBLISHED}
    assert measured >= published & {case.transport.id for case in plan.cases(asked, registry.select)}


@each
def test_it_was_made_by_committed_code_on_a_machine_that_is_described(name):
    known = facts(name)
    assert known["code"]["modified"] is False
    assert re.fullmatch(r"[0-9a-f]{40}", known["code"]["commit"])
    fingerprints = {one["fingerprint"] for one in folders.members(known)}
    assert {row.environment for row in runs_csv.load(FOLDER / name / "runs.csv")} == fingerprints
    assert known["machine"]["cpu"]
    assert known["machine"]["memory_bytes"] > 10**9


@each
def test_it_is_small_and_names_no_path_of_the_machine(name):
    files = [path for path in (FOLDER / name).rglob("*") if path.is_file()]
    # 9,596 runs of crossings have 650 bytes each.
    assert sum(path.stat().st_size for path in files) < 10_000_000
    for path in files:
        if path.suffix != ".png":
            assert re.findall(r"(?<![\w.])/(?:home|root|tmp|work|usr|mnt|Users)/\S*", path.read_text()) == []


def test_the_committed_fidelity_matrix_is_what_the_transports_declare():
    """If it is not, make it again with `lab verify --to results/fidelity`. It may lack newer transports."""
    with (ROOT / "results" / "fidelity" / "fidelity.csv").open(newline="", encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["outcome"] != "unavailable"]
    assert len(found) > 10_000
    catalogue = registry.catalogue()
    for one in found:
        declared = catalogue[one["transport"]].lossy.get(one["kind"])
        fine = {declared} if declared else {"exact", "converted", "refused"}  # refused by the server
        assert one["outcome"] in fine, one


def test_make_names_every_suite():
    (named,) = re.findall(r"SUITE=([a-z]+\|[a-z|]+)", (ROOT / "Makefile").read_text("utf-8"))
    assert set(named.split("|")) == set(NAMES)
