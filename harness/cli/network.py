"""`lab recommend --network`: the fastest over a network, from a run that has this network, else from a new one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from rich.console import Console

from harness import settings
from harness.cli import newest, runs
from harness.cli.app import echo
from harness.model import LabError, Value

_ROUND_TRIP = re.compile(r"(\d+(?:\.\d+)?) ?ms", re.IGNORECASE)
_RATE = re.compile(r"(\d+) ?([mg])bit(/s)?", re.IGNORECASE)
_SIZE = "default"


def show(
    chosen: settings.Settings, console: Console, network: str, rows: int | None, to: str, of: str, frame: str
) -> None:
    """Print the fastest transports over a network such as `10ms,1Gbit`; without a run over it, run its cases first.

    Raises LabError for an unknown network, or a lab that cannot make it.
    """
    parameters = parsed(network)
    try:
        newest.show_at(chosen, console, rows, to, of, frame, parameters)
    except newest.NoRun:
        echo(f"no run has the network {network} yet: it is run now")
        _run(chosen, parameters, rows)
        newest.show_at(chosen, console, rows, to, of, frame, parameters)


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
    from harness.suites import suite_files

    suite = suite_files.load(chosen.suites_dir, newest.OF_ROWS)
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
