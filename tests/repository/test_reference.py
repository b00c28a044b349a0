"""The files made from the reference runs: the page of results; the runs that may become a reference run."""

import json
import re
from types import SimpleNamespace

import pytest

from harness.docs import reference
from harness.model import LabError
from harness.results import runs_csv
from harness.results.row import ok_rows
from harness.settings import ROOT

RUNS = sorted(path.name for path in (ROOT / "results" / "reference").iterdir())


@pytest.mark.parametrize("name", RUNS)
def test_every_reference_run_is_in_the_page_of_results_with_its_number_of_ok_runs(name):
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
    monkeypatch.setattr(reference.sources, "write", lambda folder, transports: None)
    monkeypatch.setattr(reference.folders, "read", lambda folder: SimpleNamespace(rows=[]))
    folder = tmp_path / "results" / "20260101T000000Z-host"
    (folder / "pictures").mkdir(parents=True)
    (folder / "traces").mkdir()
    names = ("runs.csv", "summary.csv", "report.md", "report.html", "pictures/a.svg", "traces/1.csv")
    for name in names:
        (folder / name).write_text(name)

    def make(size="default", select="*", modified=False, left_out=()):
        plan = {"suite": "scan", "size": size, "select": select, "experiments": [{"left_out": list(left_out)}]}
        (folder / "environment.json").write_text(
            json.dumps({"run_id": "20260101T000000Z-host", "plan": plan, "code": {"modified": modified}})
        )
        return folder

    return make


def test_a_run_becomes_the_reference_with_what_is_small_and_nothing_of_the_one_before(a_run, tmp_path):
    old = tmp_path / "results" / "reference" / "scan" / "pictures" / "old.svg"
    old.parent.mkdir(parents=True)
    old.touch()
    place = reference.adopt(a_run())
    assert place == tmp_path / "results" / "reference" / "scan"
    found = sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())
    assert found == ["environment.json", "pictures/a.svg", "report.md", "runs.csv", "summary.csv", "traces/1.csv"]
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
    with pytest.raises(LabError, match="a reference run has the default size"):
        reference.adopt(a_run(**facts))
    assert not (tmp_path / "results" / "reference").exists()
