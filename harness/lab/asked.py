"""The answer of a query to somebody's server, read once in a session of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.lab import labs
from harness.model import LabError
from harness.settings import Settings
from harness.systems import SYSTEMS

if TYPE_CHECKING:
    import polars as pl


def frame_of(settings: Settings, query: str, system: str) -> tuple[pl.DataFrame, str]:
    """Return the rows of a query to a database that is named in the environment, and the query as it was asked.

    Raises LabError.
    """
    from harness.datasets.own.reading import of_memory

    with labs.OPENED["external"](settings) as lab:
        if system not in lab.systems:
            named = labs.variables(SYSTEMS[system])
            raise LabError(f"expected the address of {system} to ask it the query, found none; set {named}")
        rows, asked = SYSTEMS[system].session.answer(lab.endpoints, query)
        return of_memory(rows), asked
