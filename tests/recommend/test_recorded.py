"""Races over recorded runs of the five examples, within the default budget: do they find the fastest in time?"""

import json
from pathlib import Path
from statistics import geometric_mean

import pytest

from benchmarks.replay import race, record_of
from harness.recommend.budget import BUDGET
from harness.recommend.race import LAST_PASSES
from harness.report import recommendation as results
from harness.report.summary import EXACT

RECORDED = Path(__file__).parents[2] / "benchmarks" / "recorded"
RACED_WITHIN = 180.0  # seconds: the budget of the real races that are kept
FOLDERS = sorted(path for path in RECORDED.iterdir() if path.is_dir())


@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_in_95_of_100_races_the_winner_is_within_a_tenth_of_the_best_and_finalists_had_their_passes_in_time(
    folder: Path,
) -> None:
    record = record_of(folder)
    ended = [race(record, seed) for seed in range(100)]
    assert sum(one.factor <= 1.1 and one.enough for one in ended) >= 95, [one.factor for one in ended]
    assert max(one.seconds for one in ended) < BUDGET
    assert sum(one.best == "out" for one in ended) <= 5
    for one in ended:
        times = one.racing.race.told[record.rows]
        assert not one.enough or min(len(times[name]) for name in one.racing.race.contenders) >= LAST_PASSES


@pytest.mark.parametrize(
    "folder", [path for path in FOLDERS if (path / results.FILE).exists()], ids=lambda folder: folder.name
)
def test_the_winner_of_a_real_race_is_within_a_tenth_of_the_best_of_the_recorded_runs(folder: Path) -> None:
    found, record = json.loads((folder / results.FILE).read_text()), record_of(folder)
    of_all_rows = {
        name: geometric_mean([row.took for row in runs if row.ok])
        for (name, rows), runs in record.runs.items()
        if rows == record.rows and all(row.fidelity == EXACT for row in runs)
    }
    assert (found["rows"], found["ended"]) == (record.rows, "")
    assert found["seconds"] < RACED_WITHIN
    assert found["fastest"]["runs"] >= LAST_PASSES
    assert of_all_rows[found["fastest"]["transport"]] <= 1.1 * min(of_all_rows.values())


def test_there_are_runs_of_every_example() -> None:
    assert len(FOLDERS) == 5
