"""The parent of all runs: for each one let the rig prepare it, run a worker, verify, append a row.

Every outcome of a run becomes a row. Only failures of the whole suite (no disk space, no server at the start) are
raised.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from polars.exceptions import PanicException

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
from harness.results.folder import Facts
from harness.results.row import OF_MEASUREMENT, OF_TRANSPORT, Row
from harness.run import fault_attribution
from harness.run.ahead import Ahead
from harness.run.estimate import Key
from harness.run.execution import Execution, Worker, measurement
from harness.run.plan import shuffled_runs
from harness.run.redaction import DataRules
from harness.run.rigs.rig import LIMIT, AnyRig, NotNow, RunRequest, Stop, Unavailable
from harness.run.together import execute_together
from harness.worker.measure import cores_used
from harness.worker.messages import Answer, Failed

_BYTES_A_RUN = 1_000_000  # disk space for rows, logs and environment.json
_SAID = {Unavailable: Status.UNAVAILABLE, NotNow: Status.AGAIN, NotConvertible: Status.MISMATCH}
_RESTARTED = " and was restarted"
_LONGEST_ERROR = 500  # characters of a reason in runs.csv; the run's logs have all of it


@dataclass(frozen=True, kw_only=True)
class SuiteRun:
    """A run of a suite that is ready or under way: its request, rig, folder and earlier rows.

    `rules` are those of its data. `calibration` is that of its start, empty without one. If `ahead` is on, the next
    worker starts while a result is verified. At `deadline` (monotonic clock) a running run is ended and must be
    repeated.
    """

    request: RunRequest
    rig: AnyRig
    fingerprint: str
    folder: Path
    earlier: Sequence[Row] = ()
    rules: DataRules = field(default_factory=DataRules)
    calibration: Facts = field(default_factory=dict)
    ahead: Ahead = field(default_factory=Ahead)
    deadline: float = math.inf

    @cached_property
    def done(self) -> list[Row]:
        """The earlier rows that count."""
        return [row for row in self.earlier if row.status is not Status.AGAIN]

    @cached_property
    def todo(self) -> list[Run]:
        """The remaining runs, in their order."""
        done = {row.key for row in self.done}
        return [
            run
            for run in shuffled_runs(self.request.plan, self.request.cases, self.request.run_id)
            if run.key not in done
        ]

    @cached_property
    def reasons(self) -> dict[Key, str]:
        """Why remaining runs leave a row without starting, by their keys."""
        return {run.key: outcome.error for run in self.todo if (outcome := cannot_run(self, run))}

    @property
    def work(self) -> list[Run]:
        """The remaining runs that will start."""
        return [run for run in self.todo if run.key not in self.reasons]

    @cached_property
    def excused(self) -> frozenset[Key]:
        """The runs that were excused before for a reason that excuses once."""
        return frozenset(row.key for row in self.earlier if row.error.startswith(fault_attribution.ONCE))

    @cached_property
    def rows(self) -> runs_csv.RunsFile:
        """The rows of this run, as they are on disk."""
        return runs_csv.RunsFile(self.folder / folders.RUNS, self.goes_on)

    @property
    def places(self) -> tuple[Path, ...]:
        """The folders on whose disks it writes; for /var/tmp see `reachable_folder`."""
        return self.folder, self.request.settings.state_dir, Path("/var/tmp"), Path(tempfile.gettempdir())

    @property
    def name(self) -> str:
        """The name by which it is resumed: its folder's, with the path if that is not where results are kept."""
        kept = self.folder.parent == self.request.settings.results_dir
        return self.folder.name if kept else str(self.folder)

    @property
    def goes_on(self) -> str:
        """The command that completes it, for the end of a message."""
        return f'then "lab run --resume {self.name}" goes on'


def perform(suite_run: SuiteRun, runs: Sequence[Run], on_row: Callable[[Row], None]) -> None:
    """Perform the runs in order; append each row to runs.csv, then pass it to `on_row`."""
    rows, ours = suite_run.rows, _identity(suite_run)
    rows.require_same()
    with closing(suite_run.ahead) as ahead:
        for place, run in enumerate(runs):
            following = (one for one in runs[place + 1 :] if ahead.on and not cannot_run(suite_run, one))
            ahead.next = next(following, None)
            require_room(suite_run.folder, suite_run.rig, run.case, suite_run.goes_on)
            started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
            watch = fault_attribution.watch(suite_run.places)
            limited = LIMIT in run.case.parameters
            outcome = _outcome(suite_run, run)
            disturbed = suite_run.rig.disturbed(run.case)
            outcome = watch.judged(outcome, run.key in suite_run.excused, limited, disturbed)
            stopping.check()
            if _identity(suite_run) != ours:
                raise LabError(
                    f"the results folder {suite_run.folder} was removed or renamed while this run wrote to it; "
                    f"put it back, {suite_run.goes_on}"
                )
            if outcome.status is Status.AGAIN and (full := watch.full()):
                raise LabError(f"no space left on the disk of {full} ({outcome.error}); make room, {suite_run.goes_on}")
            row = as_row(suite_run, run, outcome, started_at)
            rows.add(row)
            on_row(row)
    rows.require_same()


def _identity(suite_run: SuiteRun) -> tuple[int, ...]:
    """Return the identity of the results folder, to notice another folder of its name; empty without a folder."""
    return (runs_csv.identity(suite_run.folder) or ())[:2]


def require_room(folder: Path, rig: AnyRig, case: Case, then: str) -> None:
    """Raise LabError if the disk of a results folder (even if not created) lacks space for a run's frame, rows and log.

    A full disk is not the fault of the transport that meets it. The suite stops before, and can be resumed.
    """
    require_disk(folder, _BYTES_A_RUN + rig.room(case), then)


def as_row(suite_run: SuiteRun, run: Run, outcome: Outcome, started_at: str) -> Row:
    """Return a row of runs.csv for a run and its outcome."""
    case, entry, measured = run.case, run.case.transport, outcome.measurement
    rows, bytes_on_disk = suite_run.rig.extent(case)
    row = Row(
        run_id=suite_run.request.run_id,
        environment=suite_run.fingerprint,
        suite=suite_run.request.plan.suite,
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
        lab=suite_run.rig.lab_name,
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


def cannot_run(suite_run: SuiteRun, run: Run) -> Outcome | None:
    """Return the outcome of a run that does not start, because of this lab or the data's values."""
    if reason := suite_run.rig.unavailable(run.case):
        return Outcome(Status.UNAVAILABLE, reason)
    reason = suite_run.rules.unsupported(run.case)
    return Outcome(Status.UNSUPPORTED, reason) if reason else None


def _outcome(suite_run: SuiteRun, run: Run) -> Outcome:
    """Do one run; the only place in the lab that catches every exception, and turns it into a row."""
    if outcome := cannot_run(suite_run, run):
        return outcome
    suite_run.rig.revive()
    hung = False
    try:
        outcome = _measured(suite_run, run)
    except Stop as error:
        raise Stop(f"{error}; see to it, {suite_run.goes_on}") from None
    except (Unavailable, NotNow, NotConvertible) as error:
        outcome = Outcome(_SAID[type(error)], str(error))
    except NoAnswer as error:
        outcome, hung = Outcome(Status.TIMEOUT, str(error)), True
    except PanicException:
        stopping.check()  # polars panics if a signal comes while it runs Python
        raise
    except Exception as error:
        outcome = Outcome(Status.ERROR, f"{type(error).__name__}: {error}")
    outcome = _after(suite_run, run.case, outcome, hung)
    text = " ".join(redact(outcome.error, suite_run.rig.secrets).split())
    outcome = suite_run.rules.redacted(replace(outcome, error=text))
    return replace(outcome, error=outcome.error[:_LONGEST_ERROR])


def _measured(suite_run: SuiteRun, run: Run) -> Outcome:
    case, rig, time_limit = run.case, suite_run.rig, suite_run.request.plan.time_limit
    result = suite_run.folder / "result.arrow"
    log = _log(suite_run, run)
    try:
        prepared = rig.prepare(case)
    except NoAnswer as error:  # a hang before the worker starts is not this transport's fault
        rig.revive()
        return Outcome(Status.AGAIN, f"before the run {error}")
    job = replace(prepared, result=str(result), module=case.transport.module)
    start_next = partial(suite_run.ahead.start, job.contract, partial(_log, suite_run))
    left = max(suite_run.deadline - time.monotonic(), 0.0)
    seconds, died = min(time_limit, left), partial(rig.died, case)
    command = interpreters.command_of(case.transport, case.environment)
    try:
        if shared := job.shared():
            suite_run.ahead.close()
            execution = execute_together(shared, seconds, log, died, command)
        else:
            worker = suite_run.ahead.take(run) or Worker(log, command)
            execution = worker.ask(job, seconds, died, start_next, partial(rig.between, case, job))
        start_next()  # if there was no call
        _close_log(log, execution, suite_run)
        answer = execution.answer
        if answer.status is Status.TIMEOUT and left < time_limit:
            return Outcome(Status.AGAIN, "the time for all runs was up before it ended")
        if isinstance(answer, Failed):
            return Outcome(*suite_run.rules.failed(answer.status, answer.error), details=rig.left(case, job))
        checked = rig.check(case, job, answer)
        if wrong := checked.wrong:
            more = f" (and {len(wrong) - 1} more columns)" if len(wrong) > 1 else ""
            return Outcome(Status.MISMATCH, wrong[0] + more, details=checked.details)
        if suite_run.request.traces:
            path = folders.trace_path(suite_run.folder, run.order, case.transport.id)
            folders.write_trace(path, cores_used(answer.measured.report, execution.samples))
        details = answer.measured.details | answer.details | checked.details
        found = measurement(answer.measured, execution.samples)
        return Outcome(Status.OK, "", equality.came_back(checked.converted), found, details)
    finally:
        for file in suite_run.folder.glob(f"{result.name}*"):
            file.unlink()


def _log(suite_run: SuiteRun, run: Run) -> Path:
    folder = suite_run.folder / "logs"
    folder.mkdir(exist_ok=True)  # before each run: a user may have deleted it
    return folder / f"{run.order:04d}-{run.case.transport.id}.log"


def _close_log(log: Path, execution: Execution[Answer], suite_run: SuiteRun) -> None:
    """Keep the worker's log only after a failure, without passwords; never for a user's own data."""
    if execution.answer.status is Status.OK or suite_run.rules.columns:
        log.unlink(missing_ok=True)
        return
    with suppress(FileNotFoundError):  # the file was removed
        text = log.read_text(encoding="utf-8", errors="replace")
        log.write_text(redact(text, suite_run.rig.secrets), encoding="utf-8")


def _after(suite_run: SuiteRun, case: Case, outcome: Outcome, hung: bool) -> Outcome:
    """Bring the rig to rest; if the server of this case has died or hangs, restart it and say so in the outcome.

    `hung`: the outcome already says that it hangs.
    """
    rig = suite_run.rig
    died = rig.died(case)
    revived = rig.revive()
    if hung:
        return replace(outcome, error=outcome.error + (_RESTARTED if revived else ""))
    if died:
        text = f"the {' and '.join(revived)} server died during this run and was restarted; {outcome.error}"
        return Outcome(Status.ERROR, text.removesuffix("; "))
    try:
        rig.settle(case)
    except NoAnswer as error:
        text = f"after the run {error}{_RESTARTED if rig.revive() else ''}; {outcome.error}"
        return Outcome(Status.TIMEOUT, text.removesuffix("; "))
    except Exception as error:
        text = f"after the run: {type(error).__name__}: {error}"
        if outcome.status is Status.OK:
            return Outcome(Status.ERROR, text)
        return replace(outcome, error=f"{outcome.error}; {text}")
    return outcome
