"""The result of a query to a user's server, read once in their own session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from harness.lab import labs
from harness.model import LabError
from harness.settings import Settings
from harness.systems import SYSTEMS

if TYPE_CHECKING:
    from harness.datasets.user_data.data import UserData

# A second result may have other rows, by random() or LIMIT, and costs the server as much.
ROUND_TRIP = "by a round trip of the answer of the query, which was asked once"


def data_of(settings: Settings, query: str, system: str, key: Sequence[str], rows: int | None, names: bool) -> UserData:
    """Return the rows of a query to a database that the environment names as data source, with the original query.

    Raises LabError.
    """
    from harness.datasets.user_data import data, memory

    with labs.OPENED["external"](settings) as lab:
        if system not in lab.systems:
            named = labs.variables(SYSTEMS[system])
            raise LabError(f"the query has no {system} to ask; set {named}")
        answer, asked = SYSTEMS[system].session.answer(lab.endpoints, query)
        own = data.from_memory(answer, key, rows, names)
        return replace(own, query=asked, compared=f"{memory.said(answer, own.whole)}, {ROUND_TRIP}")
