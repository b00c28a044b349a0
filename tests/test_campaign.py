"""A few faults of the campaign (`python -m benchmarks.faults` has all of them): none loses a row or leaves remains."""

import tempfile
from pathlib import Path

import pytest

from benchmarks.faults import Campaign
from benchmarks.injected_faults import PHASES, TESTED, Case, cases
from harness.lab.embedded import EmbeddedLab
from harness.settings import ROOT

pytestmark = [pytest.mark.alone, pytest.mark.long]
CHOSEN = [
    "kill parent in call (postgres, embedded)",
    "kill keeper in prepare (clickhouse, embedded)",
    "cut link in verify (postgres, external)",
    "remove logs in call (postgres, embedded)",
]


@pytest.mark.parametrize("case", [case for case in cases() if str(case) in CHOSEN], ids=str)
def test_a_fault_costs_no_row_and_leaves_nothing(embedded_lab: EmbeddedLab, case: Case) -> None:
    with tempfile.TemporaryDirectory(prefix="lab-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # Postgres' account has to pass
        found = Campaign(Path(folder), embedded_lab, 30.0).tried(case, 0)
        assert found.well, f"{found}\n{(Path(folder) / 'case-0' / 'log').read_text()[-2000:]}"


def test_the_campaign_knows_every_part_and_every_phase() -> None:
    assert {str(case) for case in cases()} >= set(CHOSEN)
    assert {case.part for case in cases()} >= {"parent", "worker", "keeper", "postgres", "clickhouse", "link", "state"}
    assert {case.phase for case in cases() if case.fault != "test"} == set(PHASES)


def test_the_files_of_tests_that_the_campaign_runs_are_there() -> None:
    assert [file for files in TESTED.values() for file in files if not (ROOT / file).is_file()] == []
