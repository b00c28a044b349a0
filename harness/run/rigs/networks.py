"""The part of the rig of databases that puts a link between the worker and the server of a case.

A case goes over one where it says what that adds to the round trip or lets through; others go over loopback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from harness.lab import links
from harness.lab.labs import Lab
from harness.lab.links import Limits, Links, Off
from harness.model import Case, LabError, Server
from harness.run.rigs.rig import NotNow
from harness.settings import Settings
from harness.systems import SYSTEMS
from harness.worker.contracts.databases import DatabaseJob
from harness.worker.messages import Numbers

PARAMETERS = frozenset({"rtt_ms", "mbit_per_s"})
_ON_THE_WIRE = ("sent_bytes", "received_bytes")


@dataclass
class Networks:
    """The links of a run, or why there are none, and what the one of the run under way was measured to be."""

    links: Links | str
    _found: Numbers = field(default_factory=dict)
    _bytes_before: int = 0

    def servers(self) -> dict[str, Server]:
        """Return what environment.json says of links, among servers: nothing of a run without any."""
        return {} if isinstance(self.links, str) else {"link": self.links.server}

    def unavailable(self, case: Case) -> str | None:
        """Return why a case cannot go over its link, or None."""
        limits = limits_of(case)
        if limits is None:
            return None
        if case.transport.system not in SYSTEMS:
            return "it connects to nothing: no link is between"
        if "s3" in case.transport.needs or case.transport.engine:
            return "it has connections to others than its database, which no link is put into"
        return self.links if isinstance(self.links, str) else None

    def put(self, case: Case, job: DatabaseJob) -> DatabaseJob:
        """Return the job with the address of the link of its case, once that is measured. Raises NotNow."""
        self._found = {}
        limits = limits_of(case)
        if limits is None or isinstance(self.links, str) or job.addresses is None:
            return job
        try:
            self._found = self.links.measured(limits).details
        except (Off, OSError) as error:
            raise NotNow(str(error)) from None
        job = replace(job, addresses=replace(job.addresses, uri=self.links.over(job.addresses.uri, limits)))
        self._found["link_is_whole"] = int(self.links.wire is not None)
        if self.links.wire is None:
            return job
        self._bytes_before = self.links.wire.bytes()
        return replace(job, namespace=self.links.wire.namespace)

    def after(self, case: Case, told: Mapping[str, int | float]) -> Numbers:
        """Return what the link of a case was measured to be; nothing over loopback.

        `told` are the details of the call. Raises LabError where the client has moved more bytes than the wire has.
        """
        if limits_of(case) is None or isinstance(self.links, str) or self.links.wire is None:
            return self._found
        own, carried = sum(told.get(name, 0) for name in _ON_THE_WIRE), self.links.wire.bytes() - self._bytes_before
        if own > carried:
            raise LabError(
                f"expected {own:,} bytes of its connections on the link, found {carried:,}: it went around it"
            )
        return self._found | {"link_bytes": carried}

    def died(self, case: Case) -> bool:
        """Say whether what makes the link of a case has ended, cheaply."""
        return limits_of(case) is not None and not isinstance(self.links, str) and self.links.dead()

    def revive(self) -> list[str]:
        """Bring it back where it has ended; return its name."""
        return [] if isinstance(self.links, str) else self.links.revive()


def limits_of(case: Case) -> Limits | None:
    """Return the limits of a case's link; None over loopback. Raises LabError for values that no link can have."""
    if not PARAMETERS & case.parameters.keys():
        return None
    limits = [case.parameters.get(name, 0) for name in ("rtt_ms", "mbit_per_s")]
    if not all(type(one) is int and one >= 0 for one in limits):
        raise LabError(
            f"experiment {case.experiment}: expected rtt_ms and mbit_per_s in whole numbers (toxiproxy adds whole "
            f"milliseconds; 0 adds nothing, and limits nothing), found {case.label}"
        )
    return Limits(*map(int, limits))


@contextmanager
def linked(settings: Settings, lab: Lab, cases: Sequence[Case], say: Callable[[str], None]) -> Iterator[Networks]:
    """Yield the links that cases ask for; nothing is started where none does. Raises LabError for impossible limits."""
    asked = [limits_of(case) for case in cases]
    if not any(asked):
        yield Networks("no experiment asked for a link")
    elif lab.name != "embedded":
        yield Networks("links are made to the servers of the embedded lab alone: to others there is a network already")
    else:
        with links.opened(settings, say) as found:
            yield Networks(found)
