"""The committed reference runs: whole, of committed code, and which run may become one."""

import csv
import json
import re

import pytest

from harness import registry
from harness.docs import reference
from harness.model import LabError, Origin
from harness.results import runs_csv
from harness.results.row import ok_rows
from harness.run import plan
from harness.settings import ROOT

FOLDER = ROOT / "results" / "reference"
NAMES = sorted(path.stem for path in (ROOT / "suites").glob("*.toml"))
each = pytest.mark.parametrize("name", NAMES)


def facts(name):
    return json.loads((FOLDER / name / "environment.json").read_text())


def test_every_suite_has_a_reference_run_and_nothing_else_is_there():
    assert sorted(path.name for path in FOLDER.iterdir()) == NAMES


@each
def test_it_has_a_row_for_every_case_and_pass_of_its_plan(name):
    """But for transports that are younger than the run: a new one does not ask for a new reference run."""
    asked = plan.from_facts(facts(name)["plan"])
    assert (asked.suite, asked.size, asked.select) == (name, "default", "*")
    rows = runs_csv.load(FOLDER / name / "runs.csv")
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
    assert {row.environment for row in runs_csv.load(FOLDER / name / "runs.csv")} == {known["fingerprint"]}
    assert known["machine"]["cpu"]
    assert known["machine"]["memory_bytes"] > 10**9


@each
def test_it_is_small_and_names_no_path_of_the_machine(name):
    files = [path for path in (FOLDER / name).rglob("*") if path.is_file()]
    # The largest is that of crossings: 3,474 runs of 690 bytes each, and a summary of a third of it.
    assert sum(path.stat().st_size for path in files) < 8_000_000
    for path in files:
        if path.suffix != ".png":
            assert re.findall(r"(?<![\w.])/(?:home|root|tmp|work|usr|mnt|Users)/\S*", path.read_text()) == []


def test_the_committed_fidelity_matrix_is_what_the_ways_declare():
    """Where it is not: make it again, `lab verify --to results/fidelity`. Ways younger than it need not be in it."""
    with (ROOT / "results" / "fidelity" / "fidelity.csv").open(newline="", encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["outcome"] != "unavailable"]
    assert len(found) > 10_000
    catalogue = registry.catalogue()
    for row in found:
        declared = catalogue[row["transport"]].lossy.get(row["kind"])
        fine = {declared} if declared else {"exact", "converted", "refused"}  # refused: what the server cannot hold
        assert row["outcome"] in fine, row


def test_make_names_every_suite():
    (named,) = re.findall(r"SUITE=([a-z]+\|[a-z|]+)", (ROOT / "Makefile").read_text("utf-8"))
    assert set(named.split("|")) == set(NAMES)


RUNS = sorted(path.name for path in (ROOT / "results" / "reference").iterdir())


@pytest.mark.parametrize("name", RUNS)
def test_every_reference_run_stands_in_the_page_of_results_with_its_number_of_ok_runs(name):
    ok = ok_rows(runs_csv.load(ROOT / "results" / "reference" / name / "runs.csv"))
    part = reference.results().partition(f"## {name}: ")[2].partition("\n## ")[0]
    assert f" cases, {len(ok):,} ok runs" in part
    for link in re.findall(r"\]\(\.\./\.\./([^)]+)\)", part):
        assert (ROOT / link).is_file()


@pytest.fixture
def a_run(tmp_path, monkeypatch):
    """A run's folder, and a checkout to adopt it in."""
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    monkeypatch.setattr(reference.suite_files, "load", lambda folder, name: (folder, name))
    monkeypatch.setattr(reference.report, "write", lambda folder, suite: (folder / "report.md").write_text(str(suite)))
    folder = tmp_path / "results" / "20260101T000000Z-host"
    (folder / "pictures").mkdir(parents=True)
    (folder / "traces").mkdir()
    names = ("runs.csv", "summary.csv", "report.md", "report.html", "pictures/a.png", "pictures/a.svg", "traces/1.csv")
    for name in names:
        (folder / name).write_text(name)

    def make(size="default", select="*", modified=False, left_out=()):
        plan = {"suite": "scan", "size": size, "select": select, "experiments": [{"left_out": list(left_out)}]}
        (folder / "environment.json").write_text(json.dumps({"plan": plan, "code": {"modified": modified}}))
        return folder

    return make


def test_a_run_becomes_the_reference_with_what_is_small_and_nothing_of_the_one_before(a_run, tmp_path):
    old = tmp_path / "results" / "reference" / "scan" / "pictures" / "old.png"
    old.parent.mkdir(parents=True)
    old.touch()
    place = reference.adopt(a_run())
    assert place == tmp_path / "results" / "reference" / "scan"
    found = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    assert found == ["environment.json", "pictures/a.png", "report.md", "runs.csv", "summary.csv", "traces/1.csv"]
    assert (place / "report.md").read_text() == str((tmp_path / "suites", "scan"))


@pytest.mark.parametrize(
    "facts",
    [
        {"size": "smoke"},
        {"select": "parquet.duckdb.*"},
        {"left_out": ["parquet.duckdb.scan"]},
        {"modified": True},
        {"modified": None},
    ],
)
def test_a_part_of_a_suite_or_changed_code_is_no_reference(a_run, tmp_path, facts):
    with pytest.raises(LabError, match="expected a run of the default size"):
        reference.adopt(a_run(**facts))
    assert not (tmp_path / "results" / "reference").exists()
