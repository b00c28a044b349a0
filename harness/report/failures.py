"""What did not run and why: nothing that is not ok is left out of a report."""

from collections.abc import Iterable, Sequence

from harness.model import Status
from harness.report.points import Point, in_order
from harness.report.summary import Summary
from harness.results.row import Row

HEAD = ("status", "reason", "transport", "experiment", "parameters", "passes")


def reasons(summaries: Iterable[Summary], where: Sequence[Point] = ()) -> tuple[str, ...]:
    """Return one line for each different reason why runs are not ok, with the transports (and points) it holds for."""
    names = {point.label: point.name for point in where}
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for summary in summaries:
        if summary.status != Status.OK:
            transports = found.setdefault((summary.status, summary.error), {})
            transports.setdefault(summary.transport, []).append(names.get(summary.label, ""))
    return tuple(
        ": ".join(filter(None, reason))
        + f" ({', '.join(_at(transport, places, len(where)) for transport, places in transports.items())})"
        for reason, transports in found.items()
    )


def not_ok(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Return one line (HEAD) for each case and reason of runs that are not ok, with the passes it holds for."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        if not row.ok:
            line = (str(row.status), row.error, row.transport, row.experiment, row.label)
            found.setdefault(line, []).append(row)
    ordered = sorted(found, key=lambda line: (line[3], line[2], in_order(found[line][0].parameters), line))
    return [(*line, ", ".join(map(str, sorted(row.pass_number for row in found[line])))) for line in ordered]


def _at(transport: str, places: list[str], of: int) -> str:
    return transport if len(places) >= of else f"{transport} at {'; '.join(places)}"
