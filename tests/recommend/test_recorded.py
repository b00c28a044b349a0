"""Races drawn from recorded runs of the five examples: does the race find who was fastest?"""

from pathlib import Path

import pytest

from benchmarks.races import drawn

RECORDED = Path(__file__).parents[2] / "benchmarks" / "recorded"
FOLDERS = sorted(path for path in RECORDED.iterdir() if path.is_dir())


@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_winner_is_within_a_tenth_of_the_best_in_95_of_100_races(folder: Path) -> None:
    found = drawn(folder, 100)
    assert len(found.truth) > 10
    assert found.within >= 95, found.winners


def test_there_are_runs_of_every_example() -> None:
    assert len(FOLDERS) == 5
