"""How far more workers help: a model of the work of a row, checked against the runs it was not made from.

The model is the asymptotic bounds of operational analysis (Denning & Buzen, "The Operational Analysis of Queueing
Network Models", ACM Computing Surveys 10(3), 1978; Lazowska, Zahorjan, Graham & Sevcik, "Quantitative System
Performance", 1984, chapter 5): N workers that need `wall` seconds for a row move at most N / wall rows a second, and
nothing moves more than the resource with the most work of a row lets through. What a row costs comes from the runs with
the fewest workers alone, so that those with more workers check what it predicts. It is an upper end: nobody waits for
anybody before a resource is full. docs/methodology.md, Scaling, says what it leaves out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from harness.model import label
from harness.report import ranks
from harness.report.summary import Summary

LINK_BYTES_PER_S = 10e9 / 8  # of the network between those machines and the server's: 10 Gbit/s
_ROUNDING = 1e-9  # of a worker


@dataclass(frozen=True)
class Work:
    """What a row costs: seconds of one worker, CPU seconds of driver, workers and server, bytes on the wire.

    All but the first are None where the runs do not tell them.
    """

    wall: float
    driver: float | None
    workers: float | None
    server: float | None
    wire: float | None

    @property
    def client(self) -> float | None:
        """CPU seconds of the driver and its workers."""
        return None if self.driver is None or self.workers is None else self.driver + self.workers


@dataclass(frozen=True)
class Cap:
    """A resource, and the rows a second that it lets through whoever asks."""

    name: str
    rate: float


@dataclass(frozen=True)
class End:
    """The number of workers from which on more do not help, and the resource that is full then."""

    workers: int
    cap: Cap


@dataclass(frozen=True)
class Scaling:
    """A transport with ever more workers: the rates measured, and what the model says here and elsewhere.

    `base` is the number of workers whose runs the work was taken from. `here` are the caps of this machine, which
    driver, workers and server share; `elsewhere` those of a server that has such a machine for itself.
    """

    transport: str
    parameters: Mapping[str, str]
    work: Work
    base: int
    measured: Mapping[int, float]
    here: tuple[Cap, ...]
    elsewhere: tuple[Cap, ...]

    def predicted(self, workers: int) -> float:
        """Return the rate with so many workers on this machine."""
        return min([workers / self.work.wall, *(cap.rate for cap in self.here)])

    def extrapolated(self, workers: int) -> float:
        """Return the rate with so many workers on machines of their own: of no run, but of the model alone."""
        return min([workers / self.work.wall, *(cap.rate for cap in self.elsewhere)])

    def server_cores(self, workers: int) -> float | None:
        """Return how many cores of a server so many workers keep busy if nothing else ends it; None if not known."""
        return None if self.work.server is None else workers / self.work.wall * self.work.server

    @property
    def errors(self) -> dict[int, float]:
        """How much more was predicted than measured, as a share, by the numbers of workers that check the model."""
        return {many: self.predicted(many) / rate - 1 for many, rate in self.measured.items() if many != self.base}

    def end(self, caps: Sequence[Cap]) -> End | None:
        """Return where one more worker stops helping; None where no resource is known that would be full."""
        first = min(caps, key=attrgetter("rate"), default=None)
        return None if first is None else End(max(1, math.ceil(first.rate * self.work.wall - _ROUNDING)), first)


def scalings(summaries: Sequence[Summary], cores: int | None) -> list[Scaling]:
    """Return the scaling of each transport that ran with several numbers of an engine's workers, in their order.

    `cores` are those of the machine; without, nothing can be said.
    """
    curves: dict[tuple[str, ...], dict[int, Summary]] = defaultdict(dict)
    for case in summaries:
        if case.n and case.rows and case.workers.isdecimal():
            rest = label({name: value for name, value in case.parameters.items() if name != "workers"})
            curves[case.experiment, case.transport, rest][int(case.workers)] = case
    limits = ranks.limits(summaries)
    found = []
    for curve in curves.values():
        if cores and len(curve) > 1:
            base = min(curve)
            work = _work(curve[base], base, _wire(curve[base], summaries))
            found.append(_scaling(curve, base, work, limits.get(ranks.bounded_at(curve[base])), cores))
    return found


def _scaling(curve: Mapping[int, Summary], base: int, work: Work, bound: Summary | None, cores: int) -> Scaling:
    measured = {many: (one.rows or 0) / one.took for many, one in sorted(curve.items())}
    fastest = max(measured.values())
    # Neither is a law as the cores are: a driver may use several of them, and several connections may do more than one.
    soft = [Cap("the driver, with one core,", 1 / work.driver)] if work.driver else []
    if bound is not None and bound.rows:
        soft.append(Cap("the server's limit", bound.rows / bound.took))
    soft = [cap for cap in soft if cap.rate > fastest]
    shared = [one for one in (work.client, work.server) if one]
    here = [*([Cap(_cores(cores, "this machine"), cores / sum(shared))] if shared else []), *soft]
    elsewhere = [*([Cap(_cores(cores, "the server"), cores / work.server)] if work.server else []), *soft]
    if work.wire:
        elsewhere.append(Cap("a network of 10 Gbit/s", LINK_BYTES_PER_S / work.wire))
    case = curve[base]
    parameters = {name: value for name, value in case.parameters.items() if name != "workers"}
    return Scaling(case.transport, parameters, work, base, measured, tuple(here), tuple(elsewhere))


def _cores(number: int, of: str) -> str:
    return f"the {number} core{'s' if number > 1 else ''} of {of}"


def _work(case: Summary, workers: int, wire: float | None) -> Work:
    def a_row(seconds: float | None) -> float | None:
        return None if seconds is None or not case.rows else seconds / case.rows

    return Work(
        wall=workers * case.took / (case.rows or 1),
        driver=a_row(case.median_cpu_seconds),
        workers=a_row(case.details.get("workers_cpu_seconds")),
        server=a_row(case.details.get("server_cpu_seconds")),
        wire=wire,
    )


def _wire(case: Summary, summaries: Sequence[Summary]) -> float | None:
    """Return the bytes of a row on the wire, as one process that sends the same payload alone counts them.

    Of an engine's workers nobody counts them. The busier direction counts: the other has a wire of its own.
    """
    found = [
        max(one.details.get(name, 0) for name in ("sent_bytes", "received_bytes")) / one.rows
        for one in summaries
        if (one.system, one.operation, one.payload) == (case.system, case.operation, case.payload)
        and one.rows
        and not one.engine
    ]
    return max(found, default=0) or None
