"""Check the newest run in results/: all 56 published ways have a row, 52 ok, pg_parquet's four unavailable."""

import sys
from collections import Counter
from pathlib import Path

from harness import results

newest = max(path for path in Path("results").iterdir() if (path / "runs.csv").is_file() and path.name != "reference")
statuses = Counter(str(row["status"]) for row in results.load(newest / "runs.csv"))
print(f"{newest.name}: {dict(statuses)}")
sys.exit(statuses != {"ok": 52, "unavailable": 4})
