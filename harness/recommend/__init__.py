"""`lab recommend`: a race finds the fastest exact transport of one frame, and one screen shows it.

From Python, also from a notebook:

    from harness.recommend import recommend

    recommend(frame, to="postgres")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness import registry
from harness.model import LabError, Operation, Transport, unknown
from harness.recommend.budget import BUDGET
from harness.registry import FRAMES
from harness.systems import SYSTEMS

if TYPE_CHECKING:
    from harness.model import Frame
    from harness.report.recommendation import Recommendation

__all__ = ["direction", "recommend"]


def direction(to: str, of: str, frame: str) -> tuple[str, Operation]:
    """Return the database and the operation: a write `to` a database, or a read out `of` one.

    Raises LabError for neither, both, an unknown one, or an unknown library of the frame.
    """
    known = " or ".join(SYSTEMS)
    if bool(to) == bool(of):
        raise LabError(f"choose one direction: --to or --from, with {known}{'; not both' if to else ''}")
    if (to or of) not in SYSTEMS:
        raise LabError(f'"{to or of}" is not a database of the lab; choose {known}')
    if frame not in FRAMES:
        raise LabError(f'--frame "{frame}": choose pandas or polars')
    return to or of, Operation.WRITE if to else Operation.READ


def transports(system: str, operation: Operation, frame: str) -> list[Transport]:
    """Return every transport of a direction, whatever the data."""
    return [
        entry
        for entry in registry.select(f"{system}.*")
        if entry.operation == operation and entry.frame == frame and entry.moves_a_frame
    ]


def require_known(entries: Sequence[Transport], without: Sequence[str], style: str) -> None:
    """Raise LabError for a client, a module or a style that is wrongly named; `entries` are those of the direction."""
    known = {name for entry in entries for name in (entry.client, *entry.modules)}
    for name in without:
        if name not in known and not any(name in (one.client, *one.modules) for one in registry.select("*")):
            raise unknown("client or module for --without", name, sorted(known))
    if style and style not in {entry.style for entry in entries}:
        styles = ", ".join(sorted({entry.style for entry in entries}))
        raise LabError(f'--style "{style}": choose one of these transports\' styles: {styles}')


def recommend(
    frame: Frame,
    to: str = "",
    of: str = "",
    *,
    key: tuple[str, ...] = (),
    budget: float = BUDGET,
    external: bool = False,
    without: tuple[str, ...] = (),
    style: str = "",
    max_memory: int | None = None,
    names: bool = True,
) -> Recommendation:
    """Race the transports that move a frame in memory to a database (`to`) or out of one (`of`); return the answer.

    `frame` is a DataFrame of pandas or polars; the transports of its library race. `key` are the columns of the table's
    key, `budget` is the time limit of the race in seconds. Without `external` the race runs on embedded servers, else
    on those named in the environment. `without` are clients or modules to exclude, `style` is sync or async.
    `max_memory` is the number of bytes that a transport may use. Without `names`, results/ calls the columns column_1
    and so on. It never contains a value of the frame. The returned object shows itself as a table.

    Raises LabError with one line: the problem and the fix.
    """
    import time

    from harness import settings
    from harness.datasets.user_data import data
    from harness.recommend import judging
    from harness.recommend.eligible import Asked

    started, chosen = time.monotonic(), settings.load()
    library = "pandas" if type(frame).__module__.partition(".")[0] == "pandas" else "polars"
    system, operation = direction(to, of, library)
    asked = Asked(
        data=data.from_memory(frame, key, names=names),
        system=system,
        operation=operation,
        frame=library,
        lab="external" if external else chosen.name,
        without=without,
        style=style,
        budget=budget,
        started=started,
        max_memory=max_memory,
    )
    found, _ = judging.answered(chosen, asked, lambda said: None, judging.silent)
    return found
