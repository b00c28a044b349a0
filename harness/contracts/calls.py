"""What a worker needs to know to call a transport: the arguments of connect and of the two calls."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Calls:
    """Arguments of the warm-up and the measured call; the connection comes before them.

    `connect_warmup` is None where the warm-up goes over the same connection as the measured call.
    """

    connect: tuple[Any, ...]
    warmup: tuple[Any, ...]
    measured: tuple[Any, ...]
    connect_warmup: tuple[Any, ...] | None = None
