"""The interface of each module of this package, as the worker uses it."""

from typing import Any, Protocol

from harness.model import Transport
from harness.worker.contracts.calls import Calls, Imports
from harness.worker.messages import Answer, Failed, Job, Measured


class Contract(Protocol):
    """How the worker calls the transports of a rig."""

    JOB: type[Job[Any]]
    IMPORTS: Imports
    """Modules that the two functions below need for a transport, in addition to its own requirements."""

    def calls(self, entry: Transport, job: Any) -> Calls:
        """Prepare the arguments of a transport, outside the timed call."""

    def hand_over(self, entry: Transport, returned: Any, job: Any, measured: Measured) -> Answer | Failed:
        """Store a transport's result where the parent can verify it, and return the answer."""
