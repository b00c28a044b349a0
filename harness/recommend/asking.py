"""The race from start to end: from the user's request to the recommendation and its files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

from harness.recommend import judging, racing
from harness.recommend.budget import require_possible
from harness.recommend.eligible import Asked
from harness.recommend.racing import Racing
from harness.report import recommendation
from harness.report.recommendation import Recommendation
from harness.report.sections import write
from harness.results import folder as folders
from harness.results.row import Row
from harness.settings import Settings
from harness.suites import suite_files

Shown = Callable[[Racing], AbstractContextManager[Callable[[Row], None]]]


class Stopped(KeyboardInterrupt):
    """Ctrl-C during a race that has an answer: the answer so far, written like that of an ended race."""

    def __init__(self, found: Recommendation, folder: Path) -> None:
        self.found, self.folder = found, folder


def checked(settings: Settings, asked: Asked, resume: str | None = None) -> Asked:
    """Return the request with the default transports; `resume` is the id or folder of a race of the same data.

    Raises LabError for an impossible budget, or if no such race exists.
    """
    require_possible(asked.budget)
    wanted = suite_files.load(settings.suites_dir, racing.SUITE).answers
    asked = replace(asked, defaults=tuple(wanted.defaults) if wanted else ())
    if resume is None:
        return asked
    folder = folders.find(settings.results_dir, resume)
    return replace(asked, run_id=folders.environment(folder)["run_id"], folder=folder)


def answered(chosen: Settings, one: Asked, say: Callable[[str], None], shown: Shown) -> tuple[Recommendation, Path]:
    """Perform the race and write its files; return the recommendation and its folder. See `racing.opened`.

    Raises Stopped if the user stops it after a transport returned every value.
    """
    stopped = False
    with racing.opened(chosen, one, say) as under_way:
        try:
            with shown(under_way) as on_row:
                under_way.perform(on_row)
        except KeyboardInterrupt:
            if not any(map(under_way.race.fastest, under_way.race.told)):
                say(f"stopped before a transport returned every value; go on with --resume {under_way.track.run_id}")
                raise
            under_way.ended, stopped = "you stopped the race", True
        folder = under_way.track.folder
    found = judging.recommendation(under_way, time.monotonic() - one.started)
    recommendation.write(folder, found)
    write(folder, suite_files.load(chosen.suites_dir, racing.SUITE))
    if stopped:
        raise Stopped(found, folder)
    return found, folder


@contextmanager
def silent(under_way: Racing) -> Iterator[Callable[[Row], None]]:
    """Show no progress."""
    yield lambda row: None
