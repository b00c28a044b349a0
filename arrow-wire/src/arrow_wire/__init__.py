"""Move frames into and out of Postgres and ClickHouse through Arrow: `from arrow_wire import postgres, clickhouse`."""

from arrow_wire.errors import (
    CheckFailed,
    Conflict,
    DamagedStream,
    Disconnected,
    Error,
    ServerError,
    UnsupportedType,
    WrongValue,
)
from arrow_wire.tally import Written

__all__ = [
    "CheckFailed",
    "Conflict",
    "DamagedStream",
    "Disconnected",
    "Error",
    "ServerError",
    "UnsupportedType",
    "Written",
    "WrongValue",
]
