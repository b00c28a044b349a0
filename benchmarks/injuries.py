"""The faults of the campaign: what is done to which part of a run in which of its phases."""

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.link import Link

SYSTEMS = ("postgres", "clickhouse")
IN_WORKER = ("connect", "call")
PHASES = ("prepare", "connect", "call", "verify", "settle", "report")


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
            return [self.below("told.py", "worker")]
        keeper = self.below("keeper.py", self.system)
        if name == "keeper":
            return [keeper]
        return keeper.children(recursive=True)


Injury = Callable[[Victim], None]


@dataclass(frozen=True)
class Case:
    """One fault: what is done to which part in which phase, and how."""

    fault: str
    part: str
    phase: str
    system: str
    injure: Injury
    lab: str = "embedded"

    @property
    def at(self) -> str:
        """What the run is told to wait at."""
        return self.phase if self.phase == "report" else f"{self.phase} {self.system}"

    def __str__(self) -> str:
        return f"{self.fault} {self.part} in {self.phase} ({self.system}, {self.lab})"


def sends(number: signal.Signals, part: str) -> Injury:
    """Send a signal to every process of a part."""

    def injure(victim: Victim) -> None:
        for process in victim.part(part):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    return injure


def pauses(victim: Victim) -> None:
    """Stop the parent for three seconds, as a machine that is put to sleep does."""
    victim.parent.suspend()
    time.sleep(3)
    victim.parent.resume()


def fills(name: str) -> Injury:
    """Fill the small disk that a folder lies on."""

    def injure(victim: Victim) -> None:
        with suppress(OSError), (victim.folder / name / "filler").open("wb", buffering=0) as file:
            for size in (1_000_000, 4_096):
                with suppress(OSError):
                    while True:
                        file.write(bytes(size))

    return injure


def cuts(victim: Victim) -> None:
    """End all connections to the server."""
    victim.links[victim.system].cut()


def slows(victim: Victim) -> None:
    """Make the link to the server slow: 0.05 s for every 8 kB of a connection."""
    victim.links[victim.system].slow(0.05)


def tears(victim: Victim) -> None:
    """Leave half a line at the end of runs.csv and end the run at once."""
    with (victim.results / "runs.csv").open("a") as file:
        file.write("torn,li")
    victim.parent.kill()


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
            found.append(Case("fill", "results", phase, system, fills("results")))
            if phase != "report":
                found.append(Case("fill", "state", phase, system, fills("state")))
                found.append(Case("cut", "link", phase, system, cuts, "external"))
                found.append(Case("slow", "link", phase, system, slows, "external"))
        found.append(Case("corrupt", "runs.csv", "settle", system, tears))
    return list(dict.fromkeys(found))
