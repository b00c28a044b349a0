"""The default spread of runs, which the race assumes until it knows its own, is near that of the reference run."""

from collections import defaultdict

from harness.recommend.race import DEFAULT_SPREAD, ENOUGH, Race
from harness.report.intervals import spread_of
from harness.results import runs_csv
from harness.settings import ROOT

SHORTEST = 0.003  # seconds: below, the scatter is that of the machine's clock


def test_the_usual_spread_is_near_that_of_the_reference_run() -> None:
    cases: dict[object, list[float]] = defaultdict(list)
    for row in runs_csv.load(ROOT / "results/reference/matrix/runs.csv"):
        if row.ok and row.took > SHORTEST:
            cases[row.case].append(row.took)
    found = spread_of(cases.values())
    assert len(cases) > 300
    assert DEFAULT_SPREAD.prior / 3 < found.prior < DEFAULT_SPREAD.prior * 2  # too large costs passes, too small errs
    assert DEFAULT_SPREAD.freedom / 2 < found.freedom < DEFAULT_SPREAD.freedom * 2


def test_a_race_goes_by_its_own_scatter_once_there_are_enough_runs() -> None:
    race = Race([str(number) for number in range(ENOUGH)], 5_000, 1)
    assert race.spread == DEFAULT_SPREAD
    race.told = {5_000: {name: [1.0, 1.01 + int(name) / 1e4] for name in race.transports}}
    assert race.spread != DEFAULT_SPREAD
    assert race.spread.prior < 0.02
