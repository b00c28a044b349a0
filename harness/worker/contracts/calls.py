"""What a worker needs to know to call a transport: the arguments of connect and of the two calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.model import Operation, Value

Imports = Mapping[tuple[Operation, str], Sequence[str]]  # modules, by the operation and the frame of transports


@dataclass(frozen=True)
class Calls:
    """Arguments of the warm-up and the measured call; the connection comes before them.

    `warmup` is None where there is no warm-up. `connect_warmup` is None where the warm-up goes over the same connection
    as the measured call. What ends in `_named` are arguments by name. `following` are calls after the measured one on
    the same connection, which no clock is for: where they are not None, a list of what all calls returned is handed
    over.
    """

    connect: tuple[Any, ...]
    warmup: tuple[Any, ...] | None
    measured: tuple[Any, ...]
    connect_warmup: tuple[Any, ...] | None = None
    warmup_named: dict[str, Value] = field(default_factory=dict)
    measured_named: dict[str, Value] = field(default_factory=dict)
    following: Sequence[tuple[Any, ...]] | None = None
