"""The arguments with which a worker calls a transport: those of connect and of the two calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.model import Frame, Operation, Transport, Value
from harness.worker.messages import Answer, AnyJob, Failed, Measured

Imports = Mapping[tuple[Operation, str], Sequence[str]]  # modules by the transports' operation and frame


@dataclass(frozen=True)
class Calls:
    """Arguments of the warm-up and the measured call; the connection precedes them.

    `warmup` is None without a warm-up. `connect_warmup` is None if the warm-up uses the same connection as the measured
    call. Names with the suffix `_named` are keyword arguments. `following` are untimed calls after the measured one on
    the same connection. If it is not None, the worker hands over the results of all calls as a list.
    """

    connect: tuple[object, ...]
    warmup: tuple[object, ...] | None
    measured: tuple[object, ...]
    connect_warmup: tuple[object, ...] | None = None
    warmup_named: dict[str, Value] = field(default_factory=dict)
    measured_named: dict[str, Value] = field(default_factory=dict)
    following: Sequence[tuple[object, ...]] | None = None


# The interface of each module of this package, as the worker uses it.


class Contract(Protocol):
    """How the worker calls the transports of a rig.

    A module may have `IMPORTS`: what the two functions below need for a transport beyond its own requirements.
    """

    JOB: type[AnyJob]

    def calls(self, entry: Transport, job: AnyJob) -> Calls:
        """Prepare the arguments of a transport, outside the timed call."""

    def hand_over(self, entry: Transport, returned: Frame, job: AnyJob, measured: Measured) -> Answer | Failed:
        """Store a transport's result where the parent can verify it, and return the answer."""
