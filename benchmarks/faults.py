"""Break each part of the lab in each phase of a run and count the cost: `python -m benchmarks.faults`.

Every case is a `lab run` of two transports, one of a database. The campaign disturbs the run once and resumes it if it
did not end. Then it checks that each row is there once, that no process, table or folder is left, and how long the
reaction took. Faults of a command, a call or a file are in tests, which are cases, too. Timing is not the aim. The
campaign ends after its cases, or after --minutes. docs/dev/reliability.md has the findings. Filling a disk needs root.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psutil

from benchmarks.injected_faults import TESTED, Case, Victim, cases
from benchmarks.link import Link
from harness.lab.embedded import EmbeddedLab
from harness.machine.stopping import on_signals
from harness.machine.variables import namespace
from harness.model import LabError, Status
from harness.results import runs_csv
from harness.systems.clickhouse import client as clickhouse
from harness.systems.postgres import client as postgres

PAUSED_RUN = Path(__file__).with_name("paused_run.py")
WAYS = {"postgres": "postgres.psycopg.write_polars_copy_text", "clickhouse": "clickhouse.httpx.read_polars_parquet"}
RUN = ("--experiment", "matrix", "--rows", "2000", "--passes", "1", "--only", ",".join(WAYS.values()))
COSTS = ("lost", "twice", "charged", "failed", "processes", "tables", "folders")
PATIENCE = 400.0  # seconds for a whole run, on a machine that others use too


@dataclass
class Found:
    """The cost of a case."""

    lost: int = 0
    twice: int = 0
    charged: int = 0  # rows that blame a transport for a fault of its machine or server
    failed: int = 0  # tests, and cases that did not run to their end
    processes: int = 0
    tables: int = 0
    folders: int = 0
    seconds: float = 0.0
    rows: str = ""

    @property
    def well(self) -> bool:
        return not any(getattr(self, name) for name in COSTS)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    """Mount a small disk in memory at a folder."""
    folder.mkdir(parents=True)
    options = f"size={megabytes}m,mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class Campaign:
    """The servers of `external` cases, and one folder for each case below `folder`."""

    def __init__(self, folder: Path, servers: EmbeddedLab, time_limit: float) -> None:
        self.folder, self.servers, self.time_limit = folder, servers, time_limit

    def tried(self, case: Case, number: int) -> Found:
        """Injure one run and return the cost."""
        folder = self.folder / f"case-{number}"
        if case.fault == "test":
            return self._tested(case, folder)
        for name in ("results", "state", "temporary", "meet"):
            (folder / name).mkdir(parents=True)
        folder.chmod(0o755)
        with ExitStack() as stack:
            if case.fault == "fill":
                (folder / case.part).rmdir()
                stack.enter_context(small_disk(folder / case.part, 80 if case.part == "results" else 300))
            return self._tried(case, folder)

    def _tested(self, case: Case, folder: Path) -> Found:
        folder.mkdir()
        started = time.monotonic()
        with (folder / "log").open("wb") as log:
            command = (sys.executable, "-m", "pytest", "-q", f"--basetemp={folder}/tests", *TESTED[case.part])
            done = subprocess.run(command, stdout=log, stderr=log, timeout=4 * PATIENCE, check=False)
        said = (folder / "log").read_text(errors="replace").strip().splitlines()
        return Found(failed=int(done.returncode != 0), seconds=time.monotonic() - started, rows=said[-1])

    def _tried(self, case: Case, folder: Path) -> Found:
        victim, environment = Victim(psutil.Process(), folder, case.system), self._environment(case, folder)
        chosen = ("--external",) if case.lab == "external" else ()
        if case.lab == "external":
            victim.links = self._links(environment)
        log = (folder / "log").open("wb")
        command = (sys.executable, str(PAUSED_RUN), "run", *RUN, *chosen)
        with ExitStack() as stack:
            running = stack.enter_context(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
            )
            stack.callback(running.kill)  # should the campaign itself be ended
            victim.parent = psutil.Process(running.pid)
            wait_for(lambda: (folder / "meet" / "reached").exists() or running.poll() is not None)
            if running.poll() is not None:
                raise RuntimeError(f"the run ended before its fault:\n{(folder / 'log').read_text()[-2000:]}")
            everything = [victim.parent, *victim.parent.children(recursive=True)]
            before = _lines(folder)
            case.inject(victim)
            (folder / "meet" / "made").touch()
            started = time.monotonic()
            wait_for(lambda: _lines(folder) > before or running.poll() is not None)
            found = Found(seconds=time.monotonic() - started)
            wait_for(lambda: running.poll() is not None)
        for link in victim.links.values():
            link.slow(0)
        everything += [process for process in everything if process.is_running()]
        (folder / case.part / "filler").unlink(missing_ok=True)
        self._complete(folder, environment, chosen)
        _, left = psutil.wait_procs(everything, timeout=10)
        found.processes = len({process.pid for process in left if process.status() != psutil.STATUS_ZOMBIE})
        found.tables = len(self._tables())
        found.folders = len([*(folder / "state").glob("lab-*"), *(folder / "temporary").iterdir()])
        return self._counted(found, folder, case)

    def _complete(self, folder: Path, environment: dict[str, str], chosen: tuple[str, ...]) -> None:
        """Resume the run until it has all its rows, as its last line says; a run without a folder is started again."""
        plain = {name: value for name, value in environment.items() if not name.startswith("LAB_FAULT")}
        for _ in range(3):
            known = [path.parent.name for path in (folder / "results").glob("*/environment.json")]
            if known and len(_counted_rows(folder)) >= len(WAYS):
                return
            arguments = ("run", "--resume", known[0]) if known else ("run", *RUN, *chosen)
            with (folder / "log").open("ab") as log:
                command = (sys.executable, "-m", "harness.cli", *arguments)
                subprocess.run(command, env=plain, stdout=log, stderr=log, timeout=PATIENCE, check=False)

    def _counted(self, found: Found, folder: Path, case: Case) -> Found:
        rows = _counted_rows(folder)
        found.charged = sum(row.status is not Status.OK for row in rows) if case.innocent else 0
        keys = [(row.transport, row.pass_number) for row in rows]
        found.lost, found.twice = len(WAYS) - len(set(keys)), len(keys) - len(set(keys))
        found.rows = ", ".join(f"{row.transport.partition('.')[0]} {row.status}" for row in rows)
        return found

    def _environment(self, case: Case, folder: Path) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}
        return inherited | {
            "LAB_RESULTS_DIR": str(folder / "results"),
            "LAB_STATE_DIR": str(folder / "state"),
            "LAB_LOCK_DIR": str(folder / "lock"),
            "LAB_DATASETS_DIR": str(self.folder / "datasets"),
            "LAB_TIME_LIMIT": str(self.time_limit),
            "LAB_FAULT_PLACE": str(folder / "meet"),
            "LAB_FAULT_PHASE": case.at,
            "TMPDIR": str(folder / "temporary"),
        }

    def _links(self, environment: dict[str, str]) -> dict[str, Link]:
        """Put a link before every address, name them in the environment; return those in use, by system."""
        names = {
            "postgres": ("LAB_POSTGRES_URI", "postgres"),
            "clickhouse_native": ("LAB_CLICKHOUSE_NATIVE_URI", ""),
            "clickhouse_http": ("LAB_CLICKHOUSE_HTTP_URL", "clickhouse"),
        }
        found = {}
        for endpoint, (variable, system) in names.items():
            parts = urlsplit(self.servers.endpoints[endpoint])
            link = Link(parts.port or 0)
            environment[variable] = urlunsplit(
                parts._replace(netloc=f"{parts.username}:{parts.password}@127.0.0.1:{link.port}")
            )
            found[system] = link
        return found

    def _tables(self) -> list[Any]:
        """Return the tables of measured data that are left in the servers of others."""
        query = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{namespace()}'"
        connection = postgres.open_connection(self.servers.endpoints)
        client = clickhouse.open_connection(self.servers.endpoints)
        try:
            with connection.cursor() as cursor:
                cursor.execute(query)
                return [*cursor.fetchall(), *client.query(query).result_rows]
        finally:
            connection.close()
            client.close()


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until something is so. Raises TimeoutError after PATIENCE."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE:g} s in vain")
        time.sleep(0.02)


def _lines(folder: Path) -> int:
    return sum(path.read_text(errors="replace").count("\n") for path in (folder / "results").glob("*/runs.csv"))


def _counted_rows(folder: Path) -> list[dict[str, Any]]:
    found = []
    for path in (folder / "results").glob("*/runs.csv"):
        found += [row for row in runs_csv.load_interrupted(path)[0] if row.status is not Status.AGAIN]
    return found


def table(found: list[tuple[Case, Found]]) -> str:
    """Return the findings of the campaign: one line for each fault and part, and the sum."""
    head = (
        "fault",
        "part",
        "tried",
        "rows lost",
        "twice",
        "charged",
        "failed",
        "processes",
        "tables",
        "folders",
        "longest s",
    )
    groups: dict[tuple[str, str], list[Found]] = {}
    for case, one in found:
        groups.setdefault((case.fault, case.part), []).append(one)
    groups["all", ""] = [one for _, one in found]
    lines = [head, ("---",) * 2 + ("---:",) * 9]
    for (fault, part), group in groups.items():
        sums = (str(sum(getattr(one, name) for one in group)) for name in COSTS)
        longest = max((one.seconds for one in group), default=0.0)
        lines.append((fault, part, str(len(group)), *sums, f"{longest:.0f}"))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> int:
    """Try the faults in a seeded order and print the table; 0 when none cost anything."""
    parser = argparse.ArgumentParser(description="Break each part of the lab in each phase of a run.")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after the case that is under way then")
    parser.add_argument("--only", default="", help="words that a case must have, such as 'stop postgres'")
    parser.add_argument("--seed", type=int, default=1, help="of the order of the cases")
    parser.add_argument("--limit", type=float, default=8.0, help="seconds of a worker's life, for what hangs")
    asked = parser.parse_args()
    chosen = [case for case in cases() if all(word in str(case) for word in asked.only.split())]
    random.Random(asked.seed).shuffle(chosen)
    until, found = time.monotonic() + 60 * asked.minutes, []
    with tempfile.TemporaryDirectory(prefix="faults-", dir="/var/tmp") as scratch:
        Path(scratch).chmod(0o755)
        with on_signals(), EmbeddedLab(Path(scratch) / "servers") as servers:
            campaign = Campaign(Path(scratch), servers, asked.limit)
            for number, case in enumerate(chosen):
                if time.monotonic() > until:
                    break
                try:
                    one = campaign.tried(case, number)
                except (LabError, RuntimeError, TimeoutError) as error:  # the other cases are tried all the same
                    one = Found(failed=1, rows=str(error))
                found.append((case, one))
                print(
                    f"{'ok  ' if one.well else 'FAIL'} {case}: {one.rows}; reacted in {one.seconds:.1f} s", flush=True
                )
                if not one.well:
                    print(f"     {one}\n" + (Path(scratch) / f"case-{number}" / "log").read_text()[-1500:], flush=True)
    print(f"\n{len(found)} of {len(chosen)} faults tried\n\n{table(found)}")
    return 0 if all(one.well for _, one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
