"""The answer of `lab recommend` without data: the answers of this machine's newest run, else of the reference run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from rich.console import Console

from harness import settings
from harness.cli import runs
from harness.cli.app import called, command_line, echo, put, say
from harness.machine.inventory import describe_machine
from harness.model import LabError, Operation, Value
from harness.report import markdown
from harness.report.answers import answers
from harness.report.crossings import AtRows, Direction, at_rows, at_rows_table, directions
from harness.report.sections import closing
from harness.report.summary import Summary, summarise
from harness.report.terminal import LINES, fits, lines_of, printable
from harness.results import folder as folders
from harness.results.environment import made_on
from harness.results.folder import StoredRun
from harness.suites import suite_files
from harness.suites.suite import Suite
from harness.systems import SYSTEMS

_Answers = TypeVar("_Answers")
_SUITE, OF_ROWS = "matrix", "crossings"


class NoRun(LabError):
    """No run of this machine has an answer, and no reference run came with the lab."""


def show(chosen: settings.Settings, console: Console) -> None:
    """Print the answers of the newest whole run of this machine, or of the one that comes with the lab.

    Raises LabError without such a run.
    """
    suite = suite_files.load(chosen.suites_dir, _SUITE)
    wanted = suite.answers
    run, summaries, _ = _found(chosen, suite, lambda run, summaries: wanted and answers(wanted, summaries))
    last = [*_said(chosen, suite, run, [wanted.experiment] if wanted else []), _your_own()]
    room = LINES - lines_of(last, console.width)
    put(console, *closing(suite, run.rows, summaries, console.width, room, short=True, named=called).tables)
    say(console, *last)


def show_at(
    chosen: settings.Settings,
    console: Console,
    rows: int | None,
    to: str,
    of: str,
    frame: str,
    network: Mapping[str, str] | None = None,
) -> None:
    """Print the fastest transports at a number of rows, in the requested directions: by default of all databases.

    With the parameters of a network, print those over it; without rows, those at the most rows of the run over it.
    Raises NoRun if no run has such cases, or if it has none of the directions.
    """
    if rows is not None and rows < 1:
        raise LabError(f"rows {rows}: give a whole number of at least 1")
    suite = suite_files.load(chosen.suites_dir, OF_ROWS)
    wanted = suite.crossings
    experiments = (wanted.networks if network else wanted.experiments) if wanted else []

    def answered(run: StoredRun, summaries: list[Summary]) -> list[AtRows]:
        every = directions(summaries, experiments)
        over = [one for one in every if not network or one.parameters == network]
        asked = [one for one in over if one.frame == frame and _wanted(one, to, of)]
        return [found for one in asked if (found := at_rows(one, rows or max(map(max, one.curves.values()))))]

    run, _, found = _found(chosen, suite, answered)
    shapes = [at_rows_table(found, rows, network or {}, named) for named in (str, called)]
    put(console, printable(next((one for one in shapes if fits(one, console.width)), shapes[-1]), console.width))
    say(console, *_said(chosen, suite, run, experiments), _your_own())


def _wanted(one: Direction, to: str, of: str) -> bool:
    written = one.operation == Operation.WRITE
    return not (to or of) or (written and one.system == to) or (not written and one.system == of)


def _found(
    chosen: settings.Settings, suite: Suite, answered: Callable[[StoredRun, list[Summary]], _Answers]
) -> tuple[StoredRun, list[Summary], _Answers]:
    """Return the newest run that counts, answers and was made here; else the reference.

    Also return its summaries and the result of `answered` for both, which is empty if a run has no answer.
    """
    machine = describe_machine()
    reference = folders.reference(chosen.results_dir, suite.name)
    for run in folders.newest_first(chosen.results_dir, suite.name):
        if run.folder == reference or (_counts(suite, run) and made_on(run.environment, machine)):
            summaries = summarise(run.rows, suite.published)
            if found := answered(run, summaries):
                return run, summaries, found
    name = "" if suite.name == _SUITE else f" {suite.name}"
    raise NoRun(
        f"no run of suite {suite.name} of this machine in {chosen.results_dir} answers; lab run{name} makes one"
    )


def _counts(suite: Suite, run: StoredRun) -> bool:
    """Say whether a run is on the lab's data and, of the matrix, of all transports, and has ended.

    A run of the size smoke, or of fewer rows than its size has, does not count. Runs of `crossings` count as they are:
    `--network` makes its own small one.
    """
    if any("columns" in data for data in run.environment.get("data", ())):  # a user's own transports
        return False
    plan = run.environment["plan"]
    if run.suite != _SUITE:
        return True
    if not run.ended or plan["select"] != "*" or plan["size"] not in suite.sizes.keys() - {"smoke"}:
        return False
    defaults = {part.name: part.parameters for part in suite.size(plan["size"]).experiments}
    return not any(
        part["origins"] or part["parameters"].get("rows", [0]) < defaults.get(part["name"], {}).get("rows", [0])
        for part in plan["experiments"]
    )


def _said(chosen: settings.Settings, suite: Suite, run: StoredRun, experiments: Sequence[str]) -> list[str]:
    """Describe the source of these answers: the run, its machine, and the data of these experiments."""
    data = _data(run, experiments)
    if run.folder != folders.reference(chosen.results_dir, suite.name):
        return [f"from run {run.name}, the newest of this machine, lab {run.environment['lab']}, on {data}"]
    where = markdown.machine(run.environment["machine"])
    return [
        f"no run of this machine has answers yet: these are of the reference run that comes with the lab ({run.name}), "
        f"made on {where}, lab {run.environment['lab']}, on {data}",
        f"to measure here: {command_line()} run{'' if suite.name == _SUITE else f' {suite.name}'}",
    ]


def _data(run: StoredRun, experiments: Sequence[str]) -> str:
    """Name the tables of the lab that the answers are about."""
    sizes: dict[str, int] = {}
    for row in run.rows:
        if row.ok and row.experiment in experiments:
            sizes[row.dataset] = max(sizes.get(row.dataset, 0), row.rows or 0)
    return " and ".join(f"{rows:,} rows of the table {name} of the lab" for name, rows in sizes.items())


def _your_own() -> str:
    return f"about your own: {command_line()} recommend --data FILE --to {next(iter(SYSTEMS))} --frame polars"


# `lab recommend --network`: the fastest over a network, from a run that has this network, else from a new one.

_ROUND_TRIP = re.compile(r"(\d+(?:\.\d+)?) ?ms", re.IGNORECASE)
_RATE = re.compile(r"(\d+) ?([mg])bit(/s)?", re.IGNORECASE)
_SIZE = "default"


def over_network(
    chosen: settings.Settings, console: Console, network: str, rows: int | None, to: str, of: str, frame: str
) -> None:
    """Print the fastest transports over a network such as `10ms,1Gbit`; without a run over it, run its cases first.

    Raises LabError for an unknown network, or a lab that cannot make it.
    """
    parameters = parsed(network)
    try:
        show_at(chosen, console, rows, to, of, frame, parameters)
    except NoRun:
        echo(f"no run has the network {network} yet: it is run now")
        _run(chosen, parameters, rows)
        show_at(chosen, console, rows, to, of, frame, parameters)


def parsed(network: str) -> dict[str, str]:
    """Return the parameters of a network; a missing part adds nothing and limits nothing. Raises LabError."""
    found: dict[str, str] = {}
    for part in map(str.strip, network.split(",")):
        if (trip := _ROUND_TRIP.fullmatch(part)) and "rtt_ms" not in found:
            found["rtt_ms"] = str(_number(trip[1]))
        elif (rate := _RATE.fullmatch(part)) and "mbit_per_s" not in found:
            found["mbit_per_s"] = str(int(rate[1]) * (1_000 if rate[2].lower() == "g" else 1))
        else:
            raise LabError(
                f'--network "{network}": give a round trip, a rate or both, such as 50ms, 100Mbit or 10ms,1Gbit'
            )
    return {"rtt_ms": "0", "mbit_per_s": "0"} | found


def _run(chosen: settings.Settings, parameters: Mapping[str, str], rows: int | None) -> None:
    """Run the experiment of networks over this one alone, and leave an ordinary run."""
    from harness.run import plan as plans
    from harness.run.rigs.rig import RunRequest

    suite = suite_files.load(chosen.suites_dir, OF_ROWS)
    experiment = suite.crossings.networks[0] if suite.crossings else None
    plan = plans.of_size(suite, _SIZE, "*", chosen.seed, experiment, rows, time_limit=chosen.time_limit)
    values: dict[str, list[Value]] = {name: [_number(value)] for name, value in parameters.items()}
    parts = tuple(replace(part, parameters=part.parameters | values) for part in plan.experiments)
    plan = replace(plan, experiments=parts)
    runs.perform(RunRequest(settings=chosen, plan=plan, rig=suite.rig, lab=chosen.name), suite)


def _number(text: str) -> Value:
    """Return a number as suites write it: without decimals if it is whole."""
    number = float(text)
    return int(number) if number.is_integer() else number
