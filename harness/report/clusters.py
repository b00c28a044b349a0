"""How far more workers help: a model of the work of a row, checked against the runs it was not made from.

The model is that of the machine repairmen, a closed queue (Feller, "An Introduction to Probability Theory", volume 1,
XVII.7; Lazowska, Zahorjan, Graham & Sevcik, "Quantitative System Performance", 1984): N workers of which each, alone,
needs `wall` seconds for a row, and the server's process for each of them, wait for one another at the cores. Nothing
moves more than the resource with the most work of a row lets through (Denning & Buzen, ACM Computing Surveys 10(3),
1978). What a row costs comes from the runs with the fewest workers alone, so that those with more workers check what
the model predicts: none of its numbers is fitted. docs/explanation/suites/cluster.md, Scaling, says what it leaves out.
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
_HALVINGS = 60  # of an interval: to the last bit of a float


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
    """A resource, and the rows a second that it lets through whoever asks.

    At `cores`, of which `of_a_worker` processes need one, they wait for one another before all are busy. Other
    resources have none: they are an end and no more.
    """

    name: str
    rate: float
    cores: int = 0
    of_a_worker: int = 1


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
        return _rate(workers, self.work, self.base, self.here)

    def extrapolated(self, workers: int) -> float:
        """Return the rate with so many workers on machines of their own: of no run, but of the model alone."""
        return _rate(workers, self.work, self.base, self.elsewhere)

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


def _rate(workers: int, work: Work, base: int, caps: Sequence[Cap]) -> float:
    """Return the rows a second of so many workers, where nobody is faster than the caps let through."""
    cores = next((cap for cap in caps if cap.cores), None)
    alone = workers / work.wall if cores is None else _queued(workers, _away(work.wall, base, cores), cores)
    return min([alone, *(cap.rate for cap in caps)])


def _queued(workers: int, away: float, cores: Cap) -> float:
    """Return the rows a second of workers whose processes are `away` seconds for a row, and then need a core.

    In the balance of the machine repairmen as many processes go to the cores as leave them; `found` are the shares of
    time (as logarithms, to a constant) in which so many are there.
    """
    processes, work = cores.of_a_worker * workers, cores.cores / cores.rate / cores.of_a_worker
    if not away:
        return min(processes, cores.cores) / work / cores.of_a_worker
    found = [0.0]
    for there in range(1, processes + 1):
        coming, leaving = (processes - there + 1) / away, min(there, cores.cores) / work
        found.append(found[-1] + math.log(coming / leaving))
    shares = [math.exp(share - max(found)) for share in found]
    busy = sum(min(there, cores.cores) * share for there, share in enumerate(shares)) / sum(shares)
    return busy / work / cores.of_a_worker


def _away(wall: float, base: int, cores: Cap) -> float:
    """Return how long a process needs no core for a row, so that `base` workers need `wall` seconds of each for one."""
    least, most = 0.0, wall
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        if _queued(base, middle, cores) > base / wall:
            least = middle
        else:
            most = middle
    return least


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
    # Here the worker's process and the server's for it need a core, elsewhere that of the server alone.
    ours, theirs = (_cores(cores, of) for of in ("this machine", "the server"))
    here = [*([Cap(ours, cores / sum(shared), cores, len(shared))] if shared else []), *soft]
    elsewhere = [*([Cap(theirs, cores / work.server, cores)] if work.server else []), *soft]
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
