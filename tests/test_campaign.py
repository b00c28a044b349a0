"""A few faults of the campaign (`python -m benchmarks.faults` has all of them): none costs a row or leaves a thing."""

import tempfile
from pathlib import Path

import pytest

from benchmarks.faults import Campaign
from benchmarks.injuries import Case, cases
from harness.lab.embedded import EmbeddedLab

pytestmark = [pytest.mark.alone, pytest.mark.long]
CHOSEN = [
    "kill parent in call (postgres, embedded)",
    "kill keeper in prepare (clickhouse, embedded)",
    "cut link in verify (postgres, external)",
]


@pytest.mark.parametrize("case", [case for case in cases() if str(case) in CHOSEN], ids=str)
def test_a_fault_costs_no_row_and_leaves_nothing(embedded_lab: EmbeddedLab, case: Case) -> None:
    with tempfile.TemporaryDirectory(prefix="lab-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # Postgres' account has to pass
        found = Campaign(Path(folder), embedded_lab, 30.0).tried(case, 0)
        assert found.well, f"{found}\n{(Path(folder) / 'case-0' / 'log').read_text()[-2000:]}"
