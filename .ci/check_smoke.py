"""Check the newest run of a suite in results/: every case of the smoke size has a row, ok where it can run here.

Usage: check_smoke.py SUITE. Only pg_parquet's transports cannot run without Docker, connectorx and inserts that the
server collects not with the embedded ClickHouse, S3, and links where no wire can be laid, not without programs compiled
by Go, engines not where they are not installed, and the counters of the memory not where there are none; the matrix has
the 56 transports of the article. What becomes of a transport whose worker is killed, or whose table is changed while it
is read, is what those runs ask: they need a row alone.
"""

import sys
from collections import Counter
from pathlib import Path

from harness import registry, settings
from harness.lab import cluster, go_programs, wire
from harness.lab.packages import not_installed
from harness.lab.s3_servers import SERVERS
from harness.model import Case
from harness.results import runs_csv
from harness.run import plan
from harness.suites import suite_files

name = sys.argv[1]
ASKED = {"kill", "change"}  # parameters
smoke = plan.of_size(suite_files.load(Path("suites"), name), "smoke", "*", seed=1)
cases = plan.cases(smoke, registry.select)
chosen = settings.load()
programs = (SERVERS[chosen.s3_server].program, go_programs.TOXIPROXY)
_, no_links = without = [not go_programs.place(program, chosen.cache_dir).is_file() for program in programs]
no_s3 = any(without)


def status_of(case: Case) -> str:
    """Return the status that a case must have on this machine."""
    if ASKED & case.parameters.keys():
        return "asked"
    if not_installed(case.transport.requires, environment=case.environment) or (
        case.transport.engine == "spark" and cluster.no_java()
    ):
        return "unavailable"
    if case.transport.client == "perf" and not list(Path("/sys/bus/event_source/devices").glob("uncore_imc*")):
        return "unsupported"
    if case.transport.id.startswith("clickhouse.connectorx."):
        return "unsupported"  # it cannot read what a server of 26.9 compresses
    if "_async_insert" in case.transport.id:
        return "unsupported"  # its one query at a time leaves nothing to collect
    on_s3 = "s3" in str(case.parameters.get("storage")) or case.experiment.startswith("s3_")
    lacking = "pg_parquet" in case.transport.needs or (no_s3 and on_s3) or lacks_its_link(case)
    return "unavailable" if lacking else "ok"


def lacks_its_link(case: Case) -> bool:
    """Say whether there is neither a wire nor a toxiproxy that can make it."""
    trip = float(case.parameters.get("rtt_ms", 0))
    return "rtt_ms" in case.parameters and bool(wire.lacking()) and (no_links or trip % 1 > 0)


expected = Counter(map(status_of, cases))
newest_first = map(runs_csv.load, sorted(Path("results").glob("2*/runs.csv"), reverse=True))
rows = next(rows for rows in newest_first if rows and rows[0].suite == name)
statuses = Counter("asked" if ASKED & row.parameters.keys() else str(row.status) for row in rows)
print(f"{rows[0].run_id}: {dict(statuses)}")
published = {row.transport for row in rows if row.origin == "published"}
if statuses != expected or (name == "matrix" and len(published) != 56):
    sys.exit(f"expected {dict(expected)}")
