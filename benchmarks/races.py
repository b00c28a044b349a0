"""Does the race find the fastest? Runs of an example are recorded once, races are drawn from them afterwards.

    .venv/bin/python -m benchmarks.races record trips postgres write polars [rows] [passes]
    .venv/bin/python -m benchmarks.races simulate results/RUN [races]

`record` runs every transport that may race on the example, on 10,000 rows and (where it is not ten times as slow as the
fastest there) on all rows, in shuffled passes. `simulate` draws for every turn of a race one of the recorded times of
that transport and number of rows, and prints in how many races the winner's recorded median is within 10 % of the best.
Recorded runs of the five examples are in benchmarks/recorded/.
"""

import math
import random
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from harness import settings
from harness.datasets import examples
from harness.datasets.own import data
from harness.model import Case, Experiment, Operation, Run
from harness.recommend.eligible import Wish, divided
from harness.recommend.race import Race, Turn, mean, stages
from harness.recommend.racing import EXPERIMENT, SUITE
from harness.report.answers import EXACT
from harness.results import folder as folders
from harness.results.row import Row
from harness.run import runner
from harness.run.plan import Plan
from harness.run.suite_run import RunRequest, open_run

WITHIN, HOPELESS = 1.1, 10.0


def record(name: str, system: str, operation: str, frame: str, rows: int = 100_000, passes: int = 5) -> None:
    """Record an example and print where."""
    chosen = settings.load()
    own = data.from_frame(examples.example(name, rows, chosen.seed), examples.EXAMPLES[name][0])
    eligible, _ = divided(Wish(system, Operation(operation), frame), own)
    entries = [entry for entry in eligible if not entry.needs]
    sizes = stages(rows)
    experiment = Experiment(EXPERIMENT, ",".join(entry.id for entry in entries), data.NAME, {"rows": [*sizes]})
    plan = Plan(SUITE, name, "*", (experiment,), passes, chosen.seed, 30.0)
    with open_run(chosen, RunRequest(plan, "databases", chosen.kind, own=own), print) as opened:
        seconds: dict[str, list[float]] = {}
        order = 0
        for size in sizes:
            took = {one: mean(found) for one, found in seconds.items()}
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
                runner.perform(opened.session, runs, on_row)
        print(opened.session.folder)


@dataclass(frozen=True)
class Drawn:
    """Races drawn from recorded runs: recorded medians of all rows, who won how often, and turns in all."""

    truth: dict[str, float]
    winners: Counter[str]
    turns: int

    @property
    def best(self) -> str:
        """Who was fastest in the recorded runs."""
        return min(self.truth, key=self.truth.__getitem__)

    def factor(self, name: str) -> float:
        """Return how many times as long as the best a transport took in the recorded runs."""
        return self.truth.get(name, math.inf) / self.truth[self.best]

    @property
    def within(self) -> int:
        """In how many races the winner is within 10 % of the best."""
        return sum(count for name, count in self.winners.items() if self.factor(name) <= WITHIN)


def drawn(folder: Path, races: int) -> Drawn:
    """Draw races from the recorded runs in a folder."""
    rows = folders.read(folder).rows
    size = max(row.rows or 0 for row in rows)
    recorded: dict[tuple[str, int], list[float]] = defaultdict(list)
    wrong = {row.transport for row in rows if not row.ok or row.fidelity != EXACT}
    for row in rows:
        if row.transport not in wrong and row.rows:
            recorded[row.transport, row.rows].append(row.took)
    winners, turns = Counter[str](), 0
    for seed in range(races):
        race, chance = Race(sorted({row.transport for row in rows}), size, seed), random.Random(seed)
        for one_pass in race.passes():
            for turn in one_pass:
                turns += 1
                _told(race, turn, recorded, chance)
        winners[race.leader(size) or "nobody"] += 1
    return Drawn({name: median(found) for (name, of), found in recorded.items() if of == size}, winners, turns)


def simulate(folder: str, races: int = 100) -> None:
    """Draw races from recorded runs and print how they ended."""
    found = drawn(Path(folder), races)
    print(f"{folder}: {len(found.truth)} transports, best {found.best} {found.truth[found.best]:.4f} s")
    print(f"winner within {WITHIN:.0%} of it in {found.within} of {races} races, {found.turns / races:.0f} runs a race")
    for name, count in found.winners.most_common():
        print(f"  {count} {name} ×{found.factor(name):.3f}")


def _told(race: Race, turn: Turn, recorded: dict[tuple[str, int], list[float]], chance: random.Random) -> None:
    if found := recorded.get((turn.transport, turn.rows)):
        race.tell(turn, chance.choice(found))
    else:
        race.fail(turn, "it was not exact, or ten times as slow on a slice")


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "record":
        record(*rest[:4], *map(int, rest[4:]))
    else:
        simulate(rest[0], *map(int, rest[1:]))
