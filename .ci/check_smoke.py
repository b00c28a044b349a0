"""Check the newest run of a suite in results/: every case of the smoke size has a row, ok where it can run here.

Usage: check_smoke.py SUITE. Only pg_parquet's four ways cannot run without Docker, and S3 not without Go; the matrix
has 56 ways in all.
"""

import os
import shutil
import sys
from collections import Counter
from pathlib import Path

from harness import plan, registry, results, suites
from harness.model import Case

name = sys.argv[1]
smoke = suites.plan(suites.load(Path("suites"), name), "smoke", "*", seed=1)
cases = plan.cases(smoke, registry.select)
no_s3 = shutil.which("go") is None and "LAB_S3_ENDPOINT" not in os.environ


def cannot_run(case: Case) -> bool:
    """Say whether a case needs what this machine does not have."""
    return "pg_parquet" in case.transport.needs or (no_s3 and "s3" in str(case.parameters.get("storage")))


expected = Counter("unavailable" if cannot_run(case) else "ok" for case in cases)
newest_first = map(results.load, sorted(Path("results").glob("2*/runs.csv"), reverse=True))
rows = next(rows for rows in newest_first if rows and rows[0]["suite"] == name)
statuses = Counter(str(row["status"]) for row in rows)
print(f"{rows[0]['run_id']}: {dict(statuses)}")
if statuses != expected or (name == "matrix" and len(cases) != 56):
    sys.exit(f"expected {dict(expected)}")
