"""The faults of the campaign: the fault, the part of a run it hits, and the phase."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.link import Link
from harness.results import runs_csv

SYSTEMS = ("postgres", "clickhouse")
IN_WORKER = ("connect", "call")
PHASES = ("prepare", "connect", "call", "verify", "settle", "report")
SERVED = ("call", "verify", "settle")  # phases in which a server has processes that serve the run
# Faults of a command, a call or a file, not of a run: tests hold it, and the campaign runs them.
TESTED = {
    "an interrupted resume": ("tests/test_results.py",),
    "damaged bytes": ("arrow-wire/tests/test_clickhouse_fuzz.py", "arrow-wire/tests/test_postgres_damaged.py"),
    "a stopped parent": ("tests/run/test_execution.py",),
    "a lock of others": ("tests/run/test_lock.py",),
    "what a command lacks": ("tests/test_cli.py",),
    "other accounts": ("tests/lab/test_embedded.py",),
    "results of others": ("tests/report/test_writing.py",),
    "framing of HTTP": ("tests/systems/clickhouse/gateway/test_gateway_http.py",),
    "names in a script": ("tests/recommend/test_recommend.py",),
}


@dataclass
class Victim:
    """A run that has come to the phase: its parent process, and where it keeps things."""

    parent: psutil.Process
    folder: Path
    system: str
    links: dict[str, Link] = field(default_factory=dict)

    def below(self, *words: str) -> psutil.Process:
        """Return the first process below the parent whose command line has all the words."""
        for process in self.parent.children(recursive=True):
            with suppress(psutil.Error):
                command = process.cmdline()
                if all(any(part.endswith(word) for part in command) for word in words):
                    return process
        raise LookupError(f"no process {' '.join(words)} below {self.parent.pid}")

    @property
    def results(self) -> Path:
        """The run's folder of results; there is none before the first run is opened."""
        return next(path.parent for path in (self.folder / "results").glob("*/environment.json"))

    def part(self, name: str) -> list[psutil.Process]:
        """Return the processes of a part: the parent, the worker, a keeper, or a server with all it started."""
        if name == "parent":
            return [self.parent]
        if name == "worker":
            return [self.below("paused_run.py", "worker")]
        keeper = self.below("keeper.py", self.system)
        if name == "keeper":
            return [keeper]
        server = keeper.children(recursive=True)
        if name == self.system:
            return server
        title = {"backend": "postgres: lab", "checkpointer": "postgres: checkpointer"}[name]
        return [process for process in server if process.cmdline()[0].startswith(title)]


Injection = Callable[[Victim], None]


@dataclass(frozen=True)
class Case:
    """One fault: the fault, its part, its phase, and how it is done. `innocent`: no transport is to pay for it."""

    fault: str
    part: str
    phase: str
    system: str
    inject: Injection
    lab: str = "embedded"
    innocent: bool = False

    @property
    def at(self) -> str:
        """The place at which the run must wait."""
        return self.phase if self.phase == "report" else f"{self.phase} {self.system}"

    def __str__(self) -> str:
        return f"{self.fault} {self.part} in {self.phase} ({self.system}, {self.lab})"


def sends(number: signal.Signals, part: str) -> Injection:
    """Send a signal to every process of a part."""

    def inject(victim: Victim) -> None:
        for process in victim.part(part):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    return inject


def pauses(victim: Victim) -> None:
    """Stop the parent for three seconds, as a machine that is put to sleep does."""
    victim.parent.suspend()
    time.sleep(3)
    victim.parent.resume()


def fills(name: str) -> Injection:
    """Fill the small disk that a folder lies on."""

    def inject(victim: Victim) -> None:
        with suppress(OSError), (victim.folder / name / "filler").open("wb", buffering=0) as file:
            for size in (1_000_000, 4_096):
                with suppress(OSError):
                    while True:
                        file.write(bytes(size))

    return inject


def cuts(victim: Victim) -> None:
    """End all connections to the server."""
    victim.links[victim.system].cut()


def slows(victim: Victim) -> None:
    """Make the link to the server slow: 0.05 s for every 8 kB of a connection."""
    victim.links[victim.system].slow(0.05)


def tears(victim: Victim) -> None:
    """Leave half a line at the end of runs.csv, which may be its first, and end the run at once."""
    with (victim.results / "runs.csv").open("a") as file:
        file.write("torn,li" if file.tell() else ",".join(runs_csv.NAMES)[:7])
    victim.parent.kill()


def leaves_no_descriptor(victim: Victim) -> None:
    """Let the worker open no more files than it has."""
    victim.part("worker")[0].rlimit(psutil.RLIMIT_NOFILE, (3, 3))


def removes_logs(victim: Victim) -> None:
    """Remove the workers' messages."""
    shutil.rmtree(victim.results / "logs", ignore_errors=True)


def removes_rows(victim: Victim) -> None:
    """Remove runs.csv."""
    (victim.results / "runs.csv").unlink(missing_ok=True)


def replaces_rows(victim: Victim) -> None:
    """Write runs.csv anew, as an editor does."""
    rows = victim.results / "runs.csv"
    if rows.exists():
        shutil.copy(rows, victim.folder / "edited")
        os.replace(victim.folder / "edited", rows)


def cases() -> list[Case]:
    """Return every fault that the campaign knows."""
    found = []
    for system in SYSTEMS:
        for phase in PHASES:
            for number, fault in ((signal.SIGKILL, "kill"), (signal.SIGTERM, "end")):
                found.append(Case(fault, "parent", phase, system, sends(number, "parent")))
            found.append(Case("stop", "parent", phase, system, pauses))
            for number, fault in ((signal.SIGKILL, "kill"), (signal.SIGSTOP, "stop")):
                servers = [] if phase == "report" else ["keeper", system]  # which have ended by then
                parts = servers + (["worker"] if phase in IN_WORKER else [])
                found += [Case(fault, part, phase, system, sends(number, part)) for part in parts]
            found.append(Case("end", "parent", phase, system, sends(signal.SIGTERM, "parent"), "external"))
            found.append(Case("fill", "results", phase, system, fills("results"), innocent=True))
            if phase != "report":
                found.append(Case("fill", "state", phase, system, fills("state"), innocent=True))
                found.append(Case("cut", "link", phase, system, cuts, "external"))
                found.append(Case("slow", "link", phase, system, slows, "external"))
            if phase in SERVED:
                found.append(Case("remove", "logs", phase, system, removes_logs, innocent=True))
                found.append(Case("remove", "runs.csv", phase, system, removes_rows, innocent=True))
                found.append(Case("replace", "runs.csv", phase, system, replaces_rows, innocent=True))
        found.append(Case("corrupt", "runs.csv", "settle", system, tears))
        found.append(Case("starve", "worker", "call", system, leaves_no_descriptor, innocent=True))
    for phase in SERVED:
        for part in ("backend", "checkpointer"):
            found.append(Case("kill", part, phase, "postgres", sends(signal.SIGKILL, part), innocent=True))
    found += [Case("test", name, "no run", "tests", lambda victim: None) for name in TESTED]
    return list(dict.fromkeys(found))
