"""The part of the rig of databases that puts a link between the worker and the server of a case.

A case without the parameter `link` goes over loopback. One with it says what the link limits (each connection alone;
nothing else can be made here), what it adds to the round trip and the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from harness.lab import links
from harness.lab.labs import Lab
from harness.lab.links import Limits, Links, Off
from harness.model import Case, LabError
from harness.run.rigs.rig import NotNow
from harness.settings import Settings
from harness.systems import SYSTEMS
from harness.worker.contracts.databases import DatabaseJob
from harness.worker.messages import Numbers

PARAMETERS = frozenset({"link", "rtt_ms", "mbit_per_s"})
PER_CONNECTION = "per connection"


@dataclass
class Networks:
    """The links of a run, or why there are none, and what the one of the run under way was measured to be."""

    links: Links | str
    _found: Numbers = field(default_factory=dict)

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
        return replace(job, addresses=replace(job.addresses, uri=self.links.over(job.addresses.uri, limits)))

    @property
    def details(self) -> Numbers:
        """What the link of the run under way was measured to be; nothing over loopback."""
        return self._found

    def died(self, case: Case) -> bool:
        """Say whether what makes the link of a case has ended, cheaply."""
        return limits_of(case) is not None and not isinstance(self.links, str) and self.links.dead()

    def revive(self) -> list[str]:
        """Bring it back where it has ended; return its name."""
        return [] if isinstance(self.links, str) else self.links.revive()


def limits_of(case: Case) -> Limits | None:
    """Return the limits of a case's link; None over loopback. Raises LabError for values that no link can have."""
    given = case.parameters
    if not PARAMETERS & given.keys():
        return None
    limits = [given.get("rtt_ms", 0), given.get("mbit_per_s", 0)]
    if given.get("link") != PER_CONNECTION or not all(type(one) is int and one >= 0 for one in limits):
        raise LabError(
            f'experiment {case.experiment}: expected link = "{PER_CONNECTION}" with rtt_ms and mbit_per_s in whole '
            f"numbers (toxiproxy has no smaller ones; 0 adds, limits nothing), found {case.label}"
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
