"""What each module of this package offers, as the worker sees it."""

from typing import Any, Protocol

from harness.model import Transport
from harness.worker.contracts.calls import Calls, Imports
from harness.worker.messages import Answer, Failed, Job, Measured


class Contract(Protocol):
    """How the worker calls the transports of a rig."""

    JOB: type[Job[Any]]
    IMPORTS: Imports
    """Modules that the two functions below need for a transport, beside those that it requires itself."""

    def calls(self, entry: Transport, job: Any) -> Calls:
        """Make ready what a transport is called with, outside the clock."""

    def hand_over(self, entry: Transport, returned: Any, job: Any, measured: Measured) -> Answer | Failed:
        """Leave what a transport returned where the parent can verify it, and return the answer."""
