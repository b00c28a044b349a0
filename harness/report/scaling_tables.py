"""How far more workers help, as sentences and tables: what was measured, what was predicted, what is extrapolated."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise

from harness.report.cells import significant
from harness.report.clusters import End, Scaling
from harness.report.points import described, in_common
from harness.report.table import Table

BEYOND = (8, 16, 32, 64)  # workers, each with a core of a machine of its own
_MICRO = 1e6
_HERE = (
    "µs a row: CPU time of the driver and its workers, and of the server (empty: not known); predicted: what the runs "
    "with the fewest workers say of more, in brackets how far that is from the measured rate",
    "the prediction: N workers and the server's processes for them, who wait for one another at the cores, and the "
    "limits named; none of its numbers is fitted (docs/explanation/suites/cluster.md, Scaling)",
)
_ELSEWHERE = (
    "no run stands behind these figures: each worker has a core of another machine, and the server one like this "
    "machine for itself; network and disks cost no more than here, but where a limit says so",
    "server cores: as many would be busy if the server were no limit",
)


def said(found: Sequence[Scaling]) -> list[str]:
    """Return how far the model was off, and a sentence for each transport."""
    return [*_judged(found), *map(_sentence, found)]


def tables(found: Sequence[Scaling]) -> list[Table]:
    """Return the model beside what was measured on this machine, and what it says of others; none without a curve."""
    return [_measured(found), _extrapolated(found)] if found else []


def _judged(found: Sequence[Scaling]) -> Iterator[str]:
    off = [abs(error) * 100 for one in found for error in one.errors.values()]
    if off:
        yield (
            "Scaling: the rate that is predicted from the runs with the fewest workers was "
            f"{statistics.median(off):.0f} % away from the measured one in the median, {max(off):.0f} % at most, "
            f"of {len(off)} prediction{'s' if len(off) > 1 else ''}"
        )


def _sentence(one: Scaling) -> str:
    subject = ", ".join([one.transport, *(described(*part) for part in one.parameters.items())])
    steps = [
        f"×{one.measured[more] / one.measured[few]:.2f} from {few} to {more}" for few, more in pairwise(one.measured)
    ]
    checks = [f"{_percent(error)} at {many}" for many, error in one.errors.items()]
    return (
        f"{subject}: on this machine {_gains(one.end(one.here))}; measured: {', '.join(steps)} workers; "
        f"predicted against measured: {', '.join(checks)}. "
        f"Extrapolated, not measured: with machines of their own {_gains(one.end(one.elsewhere))}"
    )


def _gains(end: End | None) -> str:
    if end is None:
        return "nothing is known that ends what more workers bring"
    number = "1 worker" if end.workers == 1 else f"{end.workers} workers"
    return f"more than {number} should bring nothing ({end.cap.name} let {_rate(end.cap.rate)} rows/s through)"


def _measured(found: Sequence[Scaling]) -> Table:
    checked = {many for one in found for many in one.errors}
    head = ["transport", "client µs", "server µs"]
    rows = [[name, _micro(one.work.client), _micro(one.work.server)] for name, one in _named(found)]
    for many in sorted({many for one in found for many in one.measured}):
        head += [described("workers", str(many)), *(["predicted"] if many in checked else [])]
        for one, row in zip(found, rows, strict=True):
            row.append(_rate(one.measured.get(many)))
            if many in checked:
                row.append(f"{_rate(one.predicted(many))} ({_percent(one.errors[many])})" if many in one.errors else "")
    ends = [_end(one.end(one.here)) for one in found]
    title = f"Scaling: rows/s measured on this machine, and predicted{_shared(found)}"
    return _table(title, head, [(*row, *end) for row, end in zip(rows, ends, strict=True)], _HERE)


def _extrapolated(found: Sequence[Scaling]) -> Table:
    head = ["transport", *(described("workers", str(many)) for many in BEYOND), f"server cores for {BEYOND[-1]}"]
    rows = [
        (
            name,
            *(_rate(one.extrapolated(many)) for many in BEYOND),
            _cores(one.server_cores(BEYOND[-1])),
            *_end(one.end(one.elsewhere)),
        )
        for name, one in _named(found)
    ]
    return _table(f"Scaling: rows/s EXTRAPOLATED, not measured{_shared(found)}", head, rows, _ELSEWHERE)


def _table(title: str, head: Sequence[str], rows: Sequence[tuple[str, ...]], notes: tuple[str, ...]) -> Table:
    whole = (*head, "helps up to", "then full")
    return Table(title, whole, tuple(rows), notes, wide=frozenset({0, len(whole) - 1}))


def _shared(found: Sequence[Scaling]) -> str:
    shared = in_common([one.parameters for one in found])
    return f", {shared}" if shared else ""


def _named(found: Sequence[Scaling]) -> Iterator[tuple[str, Scaling]]:
    """Yield each with its name: the transport, and the parameters that not all share."""
    for one in found:
        own = [part for part in one.parameters.items() if any(part not in other.parameters.items() for other in found)]
        yield ", ".join([one.transport, *(described(*part) for part in own)]), one


def _end(end: End | None) -> tuple[str, str]:
    return (str(end.workers), end.cap.name) if end else ("", "not known")


def _micro(seconds: float | None) -> str:
    return significant(None if seconds is None else seconds * _MICRO)


def _rate(rate: float | None) -> str:
    return "" if rate is None else significant(float(f"{rate:.3g}"))


def _cores(number: float | None) -> str:
    return "" if number is None else str(math.ceil(number))


def _percent(share: float) -> str:
    return f"{share * 100:+.0f} %"
