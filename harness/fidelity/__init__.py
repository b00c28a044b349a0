"""The fate of hostile kinds of values with every transport: the pairs of `lab verify`, tried and judged."""

from harness import registry
from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.hostile.kind import Kind
from harness.model import LabError, Transport, unknown
from harness.systems import SYSTEMS


def select(pattern: str) -> list[Transport]:
    """Return the matching transports that move whole frames into or out of a database. Raises LabError if none does."""
    chosen = [entry for entry in registry.select(pattern) if entry.system in SYSTEMS and entry.moves_a_frame]
    if not chosen:
        raise LabError(f'"{pattern}" matches no transport of a database with a frame of pandas or polars')
    return chosen


def select_kinds(names: str) -> list[Kind]:
    """Return the kinds of values of these comma-separated names, * for all. Raises LabError for an unknown one."""
    asked = list(KINDS) if names == "*" else [name.strip() for name in names.split(",")]
    for name in asked:
        if name not in KINDS:
            raise unknown("kind of values", name, KINDS)
    return [KINDS[name] for name in asked]
