"""The parent of all runs: for each one let the rig prepare it, run a worker, verify, append a row.

Every outcome of a run becomes a row. Only failures of the whole suite (no disk space, no server at the start) are
raised.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from harness.address import redact
from harness.check import equality
from harness.check.canonical import NotConvertible
from harness.lab import interpreters
from harness.lab.reference import NoAnswer
from harness.machine import stopping
from harness.machine.inventory import require_disk
from harness.model import Case, LabError, Outcome, Run, Status, label
from harness.results import folder as folders
from harness.results import runs_csv
from harness.results.row import OF_MEASUREMENT, OF_TRANSPORT, Row
from harness.run import fault_attribution
from harness.run.execution import Execution, Worker, execute, measurement
from harness.run.prefork import Ahead
from harness.run.redaction import of_types, without_values
from harness.run.rigs.rig import LIMIT, NotNow, Rig, Stop, Unavailable
from harness.run.together import execute_together
from harness.worker.measure import cores_used
from harness.worker.messages import Failed, Job

_BYTES_A_RUN = 1_000_000  # disk space for rows, logs and environment.json
_SAID = {Unavailable: Status.UNAVAILABLE, NotNow: Status.AGAIN, NotConvertible: Status.MISMATCH}
_LONGEST_ERROR = 500  # characters of a reason in runs.csv; the run's logs have all of it


@dataclass(frozen=True)
class SuiteSession:
    """One suite run in progress: its rig, folder, environment fingerprint, and a worker's time limit.

    With `traces` the session stores each ok run's cores over time. `places` are the other folders that runs use. `name`
    is the folder's name for resuming if it differs from the id. `excused` are the keys of runs that were excused before
    for a reason that excuses once (`fault_attribution.ONCE`). `user_columns` are the columns of a user's own data,
    whose values must not appear in the results. `ruled_out` are the datasets and transports that do not fit together,
    with the reasons. `undeclared` are its columns with types that no transport makes declarations about, and their
    logical types. With `ahead` the next worker starts while a result is verified. At `deadline` (monotonic clock) a
    running run is ended and must be repeated.
    """

    run_id: str
    suite: str
    rig: Rig[Any, Any]
    fingerprint: str
    folder: Path
    time_limit: float
    traces: bool = False
    places: tuple[Path, ...] = ()
    name: str = ""
    excused: frozenset[tuple[Any, ...]] = frozenset()
    user_columns: tuple[str, ...] = ()
    ruled_out: Mapping[tuple[str, str], str] = field(default_factory=dict)
    undeclared: Mapping[str, str] = field(default_factory=dict)
    ahead: Ahead | None = None
    deadline: float = math.inf

    @cached_property
    def rows(self) -> runs_csv.RunsFile:
        """The rows of this run, as they are on disk."""
        return runs_csv.RunsFile(self.folder / folders.RUNS)

    @property
    def goes_on(self) -> str:
        """The command that completes it, for the end of a message."""
        return f'then "lab run --resume {self.name or self.run_id}" goes on'


def perform(session: SuiteSession, runs: Sequence[Run], on_row: Callable[[Row], None]) -> None:
    """Perform the runs in order; append each row to runs.csv, then pass it to `on_row`."""
    try:
        _perform(session, runs, on_row)
    finally:
        if session.ahead:
            session.ahead.end()


def _perform(session: SuiteSession, runs: Sequence[Run], on_row: Callable[[Row], None]) -> None:
    ours = _identity(session)
    _require_rows(session)
    for place, run in enumerate(runs):
        if session.ahead:
            following = (one for one in runs[place + 1 :] if not cannot_run(session, one))
            session.ahead.then(next(following, None))
        require_room(session.folder, session.rig, run.case, session.goes_on)
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
        watch = fault_attribution.watch((session.folder, *session.places))
        limited = LIMIT in run.case.parameters
        outcome = _outcome(session, run)
        disturbed = session.rig.disturbed(run.case)
        outcome = watch.judged(outcome, run.key in session.excused, limited, disturbed)
        stopping.check()
        if _identity(session) != ours:
            raise LabError(
                f"the results folder {session.folder} was removed or renamed while this run wrote to it; "
                f"put it back, {session.goes_on}"
            )
        if outcome.status is Status.AGAIN and (full := watch.full()):
            raise LabError(f"no space left on the disk of {full} ({outcome.error}); make room, {session.goes_on}")
        row = as_row(session, run, outcome, started_at)
        _require_rows(session)
        try:
            session.rows.add(row)
        except OSError as error:
            raise LabError(
                f"cannot write {session.folder}/runs.csv: {error.strerror}; make room, {session.goes_on}"
            ) from None
        on_row(row)
    _require_rows(session)


def _require_rows(session: SuiteSession) -> None:
    """Raise LabError if the rows on disk are no longer those that were written."""
    try:
        session.rows.require_same()
    except LabError as error:
        raise LabError(f"{error}, {session.goes_on}") from None


def _identity(session: SuiteSession) -> tuple[int, int] | None:
    """Return the identity of the results folder, to notice another folder of its name; None without a folder."""
    try:
        found = session.folder.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def require_room(folder: Path, rig: Rig[Any, Any], case: Case, then: str) -> None:
    """Raise LabError if the disk of a results folder (even if not created) lacks space for a run's frame, rows and log.

    A full disk is not the fault of the transport that meets it. The suite stops before, and can be resumed.
    """
    require_disk(folder, _BYTES_A_RUN + rig.room(case), then)


def as_row(session: SuiteSession, run: Run, outcome: Outcome, started_at: str) -> Row:
    """Return a row of runs.csv for a run and its outcome."""
    case, entry, measured = run.case, run.case.transport, outcome.measurement
    rows, bytes_on_disk = session.rig.extent(case)
    row = Row(
        run_id=session.run_id,
        environment=session.fingerprint,
        suite=session.suite,
        experiment=case.experiment,
        parameters={name: str(value) for name, value in case.parameters.items()},
        transport=entry.id,
        published_row=entry.published or "",
        pinned=label(entry.settings),
        dataset=case.dataset,
        rows=rows,
        bytes=bytes_on_disk,
        pass_number=run.pass_number,
        order=run.order,
        status=outcome.status,
        error=outcome.error,
        fidelity=outcome.fidelity,
        lossy=entry.lossy,
        atomic=entry.atomic,
        details=outcome.details,
        lab=session.rig.lab_name,
        started_at=started_at,
        **{name: getattr(entry, name) for name in OF_TRANSPORT},
    )
    if not measured:
        return row
    return replace(
        row,
        **{name: getattr(measured, name) for name in OF_MEASUREMENT},
        rows_per_s=None if rows is None else rows / measured.seconds,
        cpu_seconds=measured.cpu_user_seconds + measured.cpu_system_seconds,
    )


def cannot_run(session: SuiteSession, run: Run) -> Outcome | None:
    """Return the outcome of a run that does not start, because of this lab or the data's values."""
    if reason := session.rig.unavailable(run.case):
        return Outcome(Status.UNAVAILABLE, reason)
    reason = session.ruled_out.get((run.case.dataset, run.case.transport.id))
    return Outcome(Status.UNSUPPORTED, reason) if reason else None


def _outcome(session: SuiteSession, run: Run) -> Outcome:
    """Do one run; the only place in the lab that catches every exception, and turns it into a row."""
    if outcome := cannot_run(session, run):
        return outcome
    session.rig.revive()
    hung = False
    try:
        outcome = _measured(session, run)
    except Stop as error:
        raise Stop(f"{error}; see to it, {session.goes_on}") from None
    except (Unavailable, NotNow, NotConvertible) as error:
        outcome = Outcome(_SAID[type(error)], str(error))
    except NoAnswer as error:
        outcome, hung = Outcome(Status.TIMEOUT, str(error)), True
    except Exception as error:
        outcome = Outcome(Status.ERROR, f"{type(error).__name__}: {error}")
    outcome = _after(session, run.case, outcome, hung)
    text = " ".join(redact(outcome.error, session.rig.secrets).split())
    if session.user_columns:
        text = without_values(outcome.status, text, session.user_columns)
    return replace(outcome, error=text[:_LONGEST_ERROR])


def _measured(session: SuiteSession, run: Run) -> Outcome:
    case, rig = run.case, session.rig
    result = session.folder / "result.arrow"
    log = _log(session, run)
    try:
        prepared = rig.prepare(case)
    except NoAnswer as error:  # a hang before the worker starts is not this transport's fault
        rig.revive()
        return Outcome(Status.AGAIN, f"before the run {error}")
    job = replace(prepared, result=str(result), module=case.transport.function.__module__)
    waiting = session.ahead.take(run) if session.ahead else None
    left = max(session.deadline - time.monotonic(), 0.0)
    try:
        execution = _executed(session, case, job, min(session.time_limit, left), log, waiting)
        _start_next(session, job)  # if there was no call
        _close_log(log, execution, session)
        answer = execution.answer
        if answer.status is Status.TIMEOUT and left < session.time_limit:
            return Outcome(Status.AGAIN, "the time for all runs was up before it ended")
        if isinstance(answer, Failed):
            return Outcome(*of_types(answer.status, answer.error, session.undeclared), details=rig.left(case, job))
        checked = rig.check(case, job, answer)
        if wrong := checked.wrong:
            more = f" (and {len(wrong) - 1} more columns)" if len(wrong) > 1 else ""
            return Outcome(Status.MISMATCH, wrong[0] + more, details=checked.details)
        if session.traces:
            path = folders.trace_path(session.folder, run.order, case.transport.id)
            folders.write_trace(path, cores_used(answer.measured.report, execution.samples))
        details = answer.measured.details | answer.details | checked.details
        found = measurement(answer.measured, execution.samples)
        return Outcome(Status.OK, "", equality.came_back(checked.converted), found, details)
    finally:
        for file in session.folder.glob(f"{result.name}*"):
            file.unlink()


def _executed(
    session: SuiteSession, case: Case, job: Job[Any], seconds: float, log: Path, waiting: Worker | None
) -> Execution[Any]:
    rig, command = session.rig, interpreters.command_of(case.transport)
    if shared := job.shared():
        if waiting:
            waiting.end()
        return execute_together(shared, seconds, log, lambda: rig.died(case), command)
    return execute(
        *(job, seconds, log, lambda: rig.died(case)),
        command=command,
        worker=waiting,
        called=partial(_start_next, session, job),
        paused=partial(rig.between, case, job),
    )


def _start_next(session: SuiteSession, job: Job[Any]) -> None:
    if session.ahead and session.ahead.next:
        session.ahead.start(job.contract, _log(session, session.ahead.next))


def _log(session: SuiteSession, run: Run) -> Path:
    folder = session.folder / "logs"
    folder.mkdir(exist_ok=True)  # before each run: somebody may have deleted it
    return folder / f"{run.order:04d}-{run.case.transport.id}.log"


def _close_log(log: Path, execution: Execution[Any], session: SuiteSession) -> None:
    """Keep the worker's log only after a failure, without passwords; never for a user's own data."""
    if execution.answer.status is Status.OK or session.user_columns:
        log.unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError):  # the file was removed
        text = log.read_text(encoding="utf-8", errors="replace")
        log.write_text(redact(text, session.rig.secrets), encoding="utf-8")


def _after(session: SuiteSession, case: Case, outcome: Outcome, hung: bool) -> Outcome:
    """Bring the rig to rest; if the server of this case has died or hangs, restart it and say so in the outcome.

    `hung`: the outcome already says that it hangs.
    """
    rig = session.rig
    died = rig.died(case)
    revived = rig.revive()
    if hung:
        return replace(outcome, error=outcome.error + _restarted(revived))
    if died:
        text = f"the {' and '.join(revived)} server died during this run and was restarted; {outcome.error}"
        return Outcome(Status.ERROR, text.removesuffix("; "))
    try:
        rig.settle(case)
    except NoAnswer as error:
        text = f"after the run {error}{_restarted(rig.revive())}; {outcome.error}"
        return Outcome(Status.TIMEOUT, text.removesuffix("; "))
    except Exception as error:
        text = f"after the run: {type(error).__name__}: {error}"
        if outcome.status is Status.OK:
            return Outcome(Status.ERROR, text)
        return replace(outcome, error=f"{outcome.error}; {text}")
    return outcome


def _restarted(revived: Sequence[str]) -> str:
    return " and was restarted" if revived else ""
