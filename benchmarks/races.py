"""Does the race find the fastest? Runs of an example are recorded once, races are drawn from them afterwards.

    .venv/bin/python -m benchmarks.races record trips postgres write polars [rows] [passes]
    .venv/bin/python -m benchmarks.races simulate benchmarks/recorded/trips [races] [budget]
    .venv/bin/python -m benchmarks.races real benchmarks/recorded/trips [budget]

`record` runs every transport that may race on the example, in shuffled passes on 10,000 rows. It then runs on all rows
those that are less than ten times as slow as the fastest. `simulate` holds races over the runs in a folder that has the
name of its example (benchmarks/replay.py). It prints in how many races the winner is within 10 % of the best, and how
long they took. `real` holds the race on engines, as `lab recommend` does, and leaves its recommendation.json in the
same folder. Recorded runs of the five examples are in benchmarks/recorded/.
"""

import random
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean, geometric_mean, median

from benchmarks import replay
from harness import settings
from harness.datasets import examples
from harness.datasets.user_data import data
from harness.model import Case, Experiment, Operation, Run
from harness.recommend import judging
from harness.recommend.budget import BUDGET
from harness.recommend.eligible import Asked, divided
from harness.recommend.race import stages
from harness.recommend.racing import EXPERIMENT, SUITE
from harness.report import recommendation
from harness.report.summary import EXACT
from harness.results.row import Row
from harness.run import runner
from harness.run.plan import Plan
from harness.run.rigs.rig import RunRequest
from harness.run.suite_run import open_run

WITHIN, HOPELESS = 1.1, 10.0


def record(name: str, system: str, operation: str, frame: str, rows: int = 100_000, passes: int = 5) -> None:
    """Record an example and print where."""
    chosen = settings.load()
    user_data = data.from_frame(examples.example(name, rows, chosen.seed), examples.EXAMPLES[name][0])
    eligible, _ = divided(Asked(data=user_data, system=system, operation=Operation(operation), frame=frame))
    entries = [entry for entry in eligible if not entry.needs]
    sizes = stages(rows)
    experiment = Experiment(EXPERIMENT, ",".join(entry.id for entry in entries), data.NAME, {"rows": [*sizes]})
    plan = Plan(SUITE, name, "*", (experiment,), passes, chosen.seed, 30.0)
    request = RunRequest(settings=chosen, plan=plan, rig="databases", lab=chosen.name, say=print, user_data=user_data)
    with open_run(request) as opened:
        seconds: dict[str, list[float]] = {}
        order = 0
        for size in sizes:
            took = {one: geometric_mean(found) for one, found in seconds.items()}
            still = [one for one in entries if not took or took.get(one.id, 1e9) <= HOPELESS * min(took.values())]
            seconds = {}

            def on_row(row: Row, seconds: dict[str, list[float]] = seconds) -> None:
                if row.ok and row.fidelity == EXACT:
                    seconds.setdefault(row.transport, []).append(row.took)

            for number in range(1, passes + 1):
                cases = [Case(entry, EXPERIMENT, data.NAME, {"rows": size}) for entry in still]
                random.Random(f"{chosen.seed}/{size}/{number}").shuffle(cases)
                runs = [Run(case, number, order + place) for place, case in enumerate(cases, start=1)]
                order += len(runs)
                runner.perform(opened, runs, on_row)
        print(opened.folder)


def simulate(folder: str, races: int = 100, budget: float = BUDGET) -> None:
    """Draw races from recorded runs, within a budget of seconds, and print how they ended."""
    record, name = replay.record_of(Path(folder)), Path(folder).name
    ended = [replay.race(record, seed, budget) for seed in range(races)]
    found = [one for one in ended if one.factor <= WITHIN]
    enough = [one for one in ended if one.enough]
    print(f"{folder}: {len({of for of, _ in record.runs})} transports, {races} races of {budget:.0f} s")
    print(f"winner within {WITHIN} times the truly best in {len(found)}, enough passes in time in {len(enough)}")
    seconds, runs = (sorted(values) for values in ([one.seconds for one in ended], [one.runs for one in ended]))
    print(f"{median(seconds):.0f} s at the median, {seconds[-1]:.0f} at most; {median(runs):.0f} runs")
    print(f"left behind by the budget: {fmean(one.behind for one in ended):.1f} transports a race")
    for name, count in Counter(f"the best was {one.best}" for one in ended).items():
        print(f"  {count} {name}")
    for name, count in Counter(one.winner for one in ended).most_common():
        print(f"  {count} {name}")


def real(folder: str, budget: float = BUDGET) -> None:
    """Hold the race of a recorded example on engines, within a budget of seconds, and keep its recommendation."""
    record, name, chosen = replay.record_of(Path(folder)), Path(folder).name, settings.load()
    user_data = data.from_frame(examples.example(name, record.rows, chosen.seed), examples.EXAMPLES[name][0])
    asked = replace(record.asked, data=user_data, budget=budget, started=time.monotonic())
    found, _ = judging.answered(chosen, asked, print, judging.silent)
    recommendation.write(Path(folder), found)
    for line in (*recommendation.opening(found), *recommendation.sentences(found)):
        print(line)


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "record":
        record(*rest[:4], *map(int, rest[4:]))
    elif command == "real":
        real(rest[0], *map(float, rest[1:]))
    else:
        simulate(rest[0], *map(int, rest[1:2]), *map(float, rest[2:]))
