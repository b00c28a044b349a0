"""The committed reference runs: one a suite, whole, of committed code, and the fidelity matrix."""

import csv
import json
import re

import pytest

from harness import registry
from harness.model import Origin
from harness.results import runs_csv
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
    """Transports that are newer than the run do not count: a new transport does not require a new reference run."""
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
    # The largest is that of crossings: 3,474 runs of 690 bytes each, and a summary of a third of this size.
    assert sum(path.stat().st_size for path in files) < 8_000_000
    for path in files:
        if path.suffix != ".png":
            assert re.findall(r"(?<![\w.])/(?:home|root|tmp|work|usr|mnt|Users)/\S*", path.read_text()) == []


def test_the_committed_fidelity_matrix_is_what_the_transports_declare():
    """If it is not, make it again with `lab verify --to results/fidelity`. It may lack newer transports."""
    with (ROOT / "results" / "fidelity" / "fidelity.csv").open(newline="", encoding="utf-8") as file:
        found = [row for row in csv.DictReader(file) if row["outcome"] != "unavailable"]
    assert len(found) > 10_000
    catalogue = registry.catalogue()
    for row in found:
        declared = catalogue[row["transport"]].lossy.get(row["kind"])
        fine = {declared} if declared else {"exact", "converted", "refused"}  # refused by the server
        assert row["outcome"] in fine, row


def test_make_names_every_suite():
    (named,) = re.findall(r"SUITE=([a-z]+\|[a-z|]+)", (ROOT / "Makefile").read_text("utf-8"))
    assert set(named.split("|")) == set(NAMES)
