"""Check the newest run of a suite in results/: every case of the smoke size has a row, ok where it can run here.

Usage: check_smoke.py SUITE. Only pg_parquet's four ways cannot run without Docker, and S3 not without programs
compiled by Go; the matrix has 56 ways in all.
"""

import sys
from collections import Counter
from pathlib import Path

from harness import plan, registry, results, settings, suites
from harness.embedded import go_programs
from harness.model import Case

name = sys.argv[1]
smoke = suites.plan(suites.load(Path("suites"), name), "smoke", "*", seed=1)
cases = plan.cases(smoke, registry.select)
chosen = settings.load()
programs = (go_programs.MINIO, go_programs.TOXIPROXY)
no_s3 = not all(go_programs.place(program, chosen.cache_dir).is_file() for program in programs)


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
