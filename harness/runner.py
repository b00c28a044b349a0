"""The parent of all runs: for each one prepare the tables, run a worker, verify, append a row.

Whatever happens in a run becomes a row; only what stops the whole suite (no disk, no server at the start) is raised.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from harness import results, verify
from harness.availability import reason_unavailable
from harness.canonical import NotConvertible
from harness.execution import Execution, execute
from harness.labs import Lab
from harness.measure import peaks_above_start
from harness.model import Dataset, Direction, LabError, Measurement, Outcome, Run, Server, Status, Transport
from harness.systems.address import redact
from harness.systems.tables import SYSTEMS, Tables

_BYTES_A_ROW = 300  # upper bound of a row in the Arrow file by which a worker hands over what it read
_BYTES_A_RUN = 1_000_000  # for rows, logs and environment.json
_LONGEST_ERROR = 500  # characters of a reason in runs.csv; the whole text is in the run's logs


@dataclass(frozen=True)
class Session:
    """One suite run under way: its lab, its dataset and tables, its folder and how long a worker may live."""

    run_id: str
    suite: str
    lab: Lab
    servers: dict[str, Server]
    dataset: Dataset
    kinds: dict[str, str]
    tables: Tables
    folder: Path
    time_limit: float


def perform(session: Session, runs: Sequence[Run], on_row: Callable[[dict[str, Any]], None]) -> None:
    """Perform the runs in their order; append each row to runs.csv, then hand it to `on_row`."""
    (session.folder / "logs").mkdir(exist_ok=True)
    for run in runs:
        require_room(session.folder, run.case.rows, f'then "lab run --resume {session.run_id}" goes on')
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        outcome = _outcome(session, run)
        row = as_row(session, run, outcome, started_at)
        try:
            results.append(session.folder / "runs.csv", row)
        except OSError as error:
            raise LabError(
                f"cannot write {session.folder}/runs.csv: {error.strerror}; "
                f'make room, then "lab run --resume {session.run_id}" goes on'
            ) from None
        on_row(row)


def require_room(folder: Path, rows: int, then: str) -> None:
    """Raise LabError when the disk of a results folder (made or not) has no room for a run's frame, rows and log.

    A full disk is no property of the transport that happens to meet it: the suite stops before, and can be resumed.
    """
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free, needed = shutil.disk_usage(existing).free, _BYTES_A_RUN + rows * _BYTES_A_ROW
    if free < needed:
        raise LabError(
            f"expected {needed / 1e6:.1f} MB of free disk in {folder}, found {free / 1e6:.1f} MB; make room, {then}"
        )


def as_row(session: Session, run: Run, outcome: Outcome, started_at: str) -> dict[str, Any]:
    """Lay a run and its outcome out as a row of runs.csv."""
    entry, measured = run.case.transport, outcome.measurement
    row: dict[str, Any] = {
        "run_id": session.run_id,
        "suite": session.suite,
        "transport": entry.id,
        "published_row": entry.published,
        "pinned": "; ".join(f"{name}={value}" for name, value in entry.settings.items()),
        "dataset": run.case.dataset,
        "rows": run.case.rows,
        "pass": run.pass_number,
        "order": run.order,
        "status": outcome.status,
        "error": outcome.error,
        "fidelity": outcome.fidelity,
        "lab": session.lab.kind,
        "started_at": started_at,
    }
    row |= {name: getattr(entry, name) for name in results.OF_TRANSPORT}
    if measured:
        row |= {name: getattr(measured, name) for name in results.OF_MEASUREMENT}
        row["rows_per_s"] = run.case.rows / measured.seconds
        row["cpu_seconds"] = measured.cpu_user_seconds + measured.cpu_system_seconds
    return row


def _outcome(session: Session, run: Run) -> Outcome:
    """Do one run; the only place of the lab that catches everything, and makes it a row."""
    entry = run.case.transport
    if reason := reason_unavailable(entry, session.lab, session.servers):
        return Outcome(Status.UNAVAILABLE, reason)
    _revive(session)
    try:
        outcome = _measured(session, run)
    except NotConvertible as error:
        outcome = Outcome(Status.MISMATCH, str(error))
    except Exception as error:
        outcome = Outcome(Status.ERROR, f"{type(error).__name__}: {error}")
    outcome = _after(session, entry, outcome)
    text = " ".join(redact(outcome.error, session.lab.endpoints.values()).split())[:_LONGEST_ERROR]
    return Outcome(outcome.status, text, outcome.fidelity, outcome.measurement)


def _measured(session: Session, run: Run) -> Outcome:
    entry = run.case.transport
    prepare = session.tables.for_write if entry.direction is Direction.WRITE else session.tables.for_read
    table, warmup_table = prepare(entry.system)
    result = session.folder / "result.arrow"
    log = session.folder / "logs" / f"{run.order:04d}-{entry.id}.log"
    job = {
        "transport": entry.id,
        "uri": SYSTEMS[entry.system].transport_uri(entry.endpoint, session.lab.endpoints[entry.endpoint]),
        "io": {"here": session.lab.io.here, "there": session.lab.io.there} if session.lab.io else None,
        "table": table,
        "warmup_table": warmup_table,
        "dataset": session.dataset.path,
        "kinds": session.kinds,
        "result": str(result),
    }
    try:
        execution = execute(job, session.time_limit, log, lambda: entry.system in session.lab.dead())
        _close_log(log, execution, session)
        if execution.answer["status"] != Status.OK:
            return Outcome(Status(execution.answer["status"]), execution.answer["error"])
        return _verified(session, entry, table, result, execution)
    finally:
        result.unlink(missing_ok=True)


def _close_log(log: Path, execution: Execution, session: Session) -> None:
    """Keep what the worker said only where something went wrong, without passwords."""
    if execution.answer["status"] == Status.OK:
        log.unlink()
    else:
        text = log.read_text(encoding="utf-8", errors="replace")
        log.write_text(redact(text, session.lab.endpoints.values()), encoding="utf-8")


def _verified(session: Session, entry: Transport, table: str, result: Path, execution: Execution) -> Outcome:
    if entry.direction is Direction.WRITE:
        wrong = session.tables.differences_in_table(entry.system, table)
    else:
        wrong = session.tables.differences(pl.read_ipc(result))
    if wrong:
        more = f" (and {len(wrong) - 1} more columns)" if len(wrong) > 1 else ""
        return Outcome(Status.MISMATCH, wrong[0] + more)
    report = execution.answer["report"]
    rss, anon, file = peaks_above_start(report, execution.samples)
    measurement = Measurement(
        seconds=report["seconds"],
        cpu_user_seconds=report["cpu_user_seconds"],
        cpu_system_seconds=report["cpu_system_seconds"],
        connect_seconds=execution.answer["connect_seconds"],
        peak_rss_bytes=rss,
        peak_anon_bytes=anon,
        peak_file_bytes=file,
    )
    return Outcome(Status.OK, "", verify.fidelity(execution.answer["converted"]), measurement)


def _after(session: Session, entry: Transport, outcome: Outcome) -> Outcome:
    """Bring the database to rest; where its server has died, bring it back and say so in the outcome."""
    if entry.system in (revived := _revive(session)):
        text = f"the {' and '.join(revived)} server died during this run and was restarted; {outcome.error}"
        return Outcome(Status.ERROR, text.removesuffix("; "))
    try:
        session.tables.settle(entry.system)
    except Exception as error:
        session.tables.forget(entry.system)
        if outcome.status is Status.OK:
            return Outcome(Status.ERROR, f"after the run: {type(error).__name__}: {error}")
    return outcome


def _revive(session: Session) -> list[str]:
    revived = session.lab.revive() if session.lab.dead() else []
    for system in revived:
        session.tables.forget(system)
    return revived
