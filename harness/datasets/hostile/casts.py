"""Frame columns that go into a table column of another type, as often happens by accident.

The right result is the server's own cast of such a column (INSERT ... SELECT). If the server cannot cast it, a refusal
is right, and so is a client-side cast that gives another server's result. Every value here survives its cast; `ranges`
has values that do not.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal

from harness.datasets.hostile.kind import Kind, one_column
from harness.model import Scalar


def _cast(logical: str, into: str, values: Sequence[Scalar], made: Sequence[Scalar], meaning: str = "") -> Kind:
    """Return the cast of a column from one logical type into another: the values, and the expected table values."""
    return one_column(
        f"{logical}_into_{into}",
        meaning or f"{logical} of the frame into a column of {into}",
        logical,
        values,
        into={f"{logical}_value": into},
        made={f"{logical}_value": list(made)},
        no_read="the table is an ordinary one",
    )


_DAYS = [dt.date(2025, 3, 4), dt.date(1970, 1, 1)]
_MIDNIGHTS = [dt.datetime(2025, 3, 4), dt.datetime(1970, 1, 1)]
_TENTH = 0.10000000149011612  # 0.1 in 32 bits
KINDS = (
    _cast("int64", "int32", [7, -8, 2**31 - 1], [7, -8, 2**31 - 1]),
    _cast("int32", "int64", [7, -8, 2**31 - 1], [7, -8, 2**31 - 1]),
    _cast("float64", "int32", [7.0, -8.0, 0.0], [7, -8, 0]),
    _cast("int32", "float64", [7, -8, 0], [7.0, -8.0, 0.0]),
    _cast(
        "float32",
        "float64",
        [0.5, _TENTH],
        [0.5, _TENTH],
        "32-bit floats into a column of 64 bits: the same value, not the same digits",
    ),
    _cast("float64", "decimal", [0.5, 0.1, -3.0], [Decimal("0.5"), Decimal("0.1"), Decimal(-3)]),
    _cast("int32", "text", [7, -8], ["7", "-8"]),
    _cast("text", "int32", ["7", "-8"], [7, -8]),
    _cast("text", "date", ["2025-03-04", "1970-01-01"], _DAYS),
    _cast("date", "timestamp", _DAYS, _MIDNIGHTS),
    _cast("timestamp", "date", _MIDNIGHTS, _DAYS),
    _cast("boolean", "int32", [True, False], [1, 0]),
    _cast("int32", "date", [20151, 0], _DAYS, "32-bit integers into a column of dates: days since 1970"),
    _cast(
        "timestamp",
        "int64",
        [dt.datetime(2025, 3, 4, 5, 6, 7), dt.datetime(1970, 1, 1)],
        [1741064767, 0],
        "timestamps into a column of 64-bit integers: seconds since 1970",
    ),
)
