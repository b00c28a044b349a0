"""Check the newest run of the suite cluster in results/: workers of an engine loaded and unloaded, and every row is ok.

Usage: check_engine.py ENGINE. Standard library only: it also looks at what a container has left.
"""

import csv
import sys
from collections import Counter
from pathlib import Path

engine = sys.argv[1]
newest = max(Path("results").glob("2*/runs.csv"))
with newest.open(newline="", encoding="utf-8") as file:
    rows = [row for row in csv.DictReader(file) if row["client"] == engine]
print(f"{newest.parent.name}, {engine}: {dict(Counter(row['status'] for row in rows))}")
if bad := [f"{row['transport']}: {row['status']}: {row['error']}" for row in rows if row["status"] != "ok"]:
    sys.exit("\n".join(["expected every row of the engine to be ok, found", *bad]))
expected = {(system, operation) for system in ("postgres", "clickhouse") for operation in ("load", "unload")}
if missing := expected - {(row["system"], row["operation"]) for row in rows}:
    sys.exit(f"expected rows of {sorted(expected)}, found none of {sorted(missing)}")
