"""Check the newest run of a suite in results/: every case of the smoke size has a row, ok where it can run here.

Usage: check_smoke.py SUITE. Only pg_parquet's four ways cannot run without Docker; the matrix has 56 in all.
"""

import sys
from collections import Counter
from pathlib import Path

from harness import plan, registry, results, suites

name = sys.argv[1]
smoke = suites.plan(suites.load(Path("suites"), name), "smoke", "*", seed=1)
cases = plan.cases(smoke, registry.select)
expected = Counter("unavailable" if "pg_parquet" in case.transport.needs else "ok" for case in cases)
newest_first = map(results.load, sorted(Path("results").glob("2*/runs.csv"), reverse=True))
rows = next(rows for rows in newest_first if rows and rows[0]["suite"] == name)
statuses = Counter(str(row["status"]) for row in rows)
print(f"{rows[0]['run_id']}: {dict(statuses)}")
if statuses != expected or (name == "matrix" and len(cases) != 56):
    sys.exit(f"expected {dict(expected)}")
