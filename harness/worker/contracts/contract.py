"""The interface of each module of this package, as the worker uses it."""

from typing import Protocol

from harness.model import Frame, Transport
from harness.worker.contracts.calls import Calls
from harness.worker.messages import Answer, AnyJob, Failed, Measured


class Contract(Protocol):
    """How the worker calls the transports of a rig.

    A module may have `IMPORTS`: what the two functions below need for a transport beyond its own requirements.
    """

    JOB: type[AnyJob]

    def calls(self, entry: Transport, job: AnyJob) -> Calls:
        """Prepare the arguments of a transport, outside the timed call."""

    def hand_over(self, entry: Transport, returned: Frame, job: AnyJob, measured: Measured) -> Answer | Failed:
        """Store a transport's result where the parent can verify it, and return the answer."""
