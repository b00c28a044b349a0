"""The network part of the database rig: a link, or TLS, between a case's worker and its server.

A case uses a link if it names an added round trip time or a rate. It uses a front of its server if it says whether its
connections have TLS. With both, TLS goes over the link. Other cases use neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from harness.lab import links, tls_endpoints
from harness.lab.labs import Lab
from harness.lab.links import Limits, Links, Off
from harness.lab.tls_endpoints import Fronts
from harness.model import Case, LabError, Server
from harness.run.rigs.rig import NotNow, wrong_value
from harness.settings import Settings
from harness.systems import SYSTEMS
from harness.worker.contracts.databases import DatabaseJob
from harness.worker.messages import Numbers
from harness.worker.meters import tree_cpu_seconds

_OF_LINKS = ("rtt_ms", "mbit_per_s")
PARAMETERS = frozenset({*_OF_LINKS, "tls"})
_ON_THE_WIRE = ("sent_bytes", "received_bytes")


@dataclass
class Networks:
    """Links and fronts of a run, or the reasons without them, and the measurement of the current run's link.

    A reason is empty until it is known whether there will be any.
    """

    links: Links | str
    fronts: Fronts | str = ""
    _found: Numbers = field(default_factory=dict)
    _bytes_before: int = 0
    _cpu_before: float | None = None
    _uri: str = ""

    def servers(self) -> dict[str, Server]:
        """Return the links and fronts for environment.json's servers: empty for a run without any."""
        found: dict[str, Links | Fronts | str] = {"link": self.links, "tls": self.fronts}
        return {name: one.server for name, one in found.items() if not isinstance(one, str)}

    def unavailable(self, case: Case) -> str | None:
        """Return why a case cannot use its link or its front, or None."""
        if reason := never(case):
            return reason
        limits, tls = limits_of(case), tls_of(case)
        if limits and (reason := self.links if isinstance(self.links, str) else self.links.unavailable(limits)):
            return reason
        return self.fronts or None if tls is not None and isinstance(self.fronts, str) else None

    def put(self, case: Case, job: DatabaseJob) -> DatabaseJob:
        """Return the job with the address of its case's link or front, after measuring the link. Raises NotNow."""
        self._found = {}
        if job.addresses is None:
            return job
        tls, self._uri = tls_of(case), job.addresses.uri
        if tls is None or isinstance(self.fronts, str):
            return self._over_link(case, job)
        job = self._over_link(case, _with_uri(job, self.fronts.before(self._uri, tls)))
        return self._asking(case, job, self.fronts, tls)

    def _over_link(self, case: Case, job: DatabaseJob) -> DatabaseJob:
        limits = limits_of(case)
        if limits is None or isinstance(self.links, str) or job.addresses is None:
            return job
        try:
            self._found = self.links.measured(limits).details
        except (Off, OSError) as error:
            raise NotNow(str(error)) from None
        job = _with_uri(job, self.links.over(job.addresses.uri, limits))
        self._found["link_is_whole"] = int(self.links.wire is not None)
        if self.links.wire is None:
            return job
        self._bytes_before, self._cpu_before = self.links.wire.bytes(), tree_cpu_seconds(self.links.wire.relay)
        return replace(job, namespace=self.links.wire.namespace)

    def _asking(self, case: Case, job: DatabaseJob, reached: Fronts, on: bool) -> DatabaseJob:
        """Return a job whose client gets the TLS choice in its address; the front's CPU time counts as the server's."""
        asks = tls_endpoints.tls_at(case.transport.endpoint)
        if asks is None or job.addresses is None:
            return job
        reached.certify(job.addresses.uri)
        pids = [*(job.server_pids or []), reached.lab.pids[tls_endpoints.NAME]]
        asking = _with_uri(job, asks.in_uri(job.addresses.uri, on, reached.certificate_file))
        return replace(asking, server_pids=pids, certificate=reached.certificate_file if on else "")

    def after(self, case: Case, told: Mapping[str, int | float]) -> Numbers:
        """Return the measurements of a case's link, and the TLS in use; empty over loopback without TLS.

        `told` are the details of the call. Raises LabError if the client has moved more bytes than the network, or if
        the connections' TLS was not as requested.
        """
        tls = tls_of(case)
        if tls is not None and not isinstance(self.fronts, str):
            self._found |= self.fronts.used(self._uri, tls)
        if limits_of(case) is None or isinstance(self.links, str) or self.links.wire is None:
            return self._found
        own, carried = sum(told.get(name, 0) for name in _ON_THE_WIRE), self.links.wire.bytes() - self._bytes_before
        spent = tree_cpu_seconds(self.links.wire.relay)
        if own > carried:
            raise LabError(f"the client moved {own:,} bytes and the link {carried:,}: the client went around the link")
        self._found["link_bytes"] = carried
        if spent is not None and self._cpu_before is not None:
            self._found["link_cpu_seconds"] = round(spent - self._cpu_before, 6)
        return self._found

    def died(self, case: Case) -> bool:
        """Return whether the process of the case's link or its front has ended; a fast check."""
        used: list[Links | Fronts | str] = [self.links] if limits_of(case) else []
        used += [self.fronts] if tls_of(case) is not None else []
        return any(one.lab.dead() for one in used if not isinstance(one, str))

    def revive(self) -> list[str]:
        """Restart the processes that have ended; return their names."""
        both: tuple[Links | Fronts | str, ...] = self.links, self.fronts
        return [name for one in both if not isinstance(one, str) for name in one.revive()]


def limits_of(case: Case) -> Limits | None:
    """Return the limits of a case's link; None over loopback. Raises LabError for impossible values."""
    if not case.parameters.keys() & {*_OF_LINKS}:
        return None
    rtt_ms, mbit_per_s = (case.parameters.get(name, 0) for name in _OF_LINKS)
    if not (type(rtt_ms) in (int, float) and type(mbit_per_s) is int and min(float(rtt_ms), mbit_per_s) >= 0):
        raise LabError(
            f"experiment {case.experiment}: {case.label}: choose a number for rtt_ms and a whole one for mbit_per_s "
            "(0 adds nothing, and limits nothing)"
        )
    return Limits(float(rtt_ms), mbit_per_s)


def tls_of(case: Case) -> bool | None:
    """Return whether a case's connections have TLS; None by default. Raises LabError for an invalid value."""
    asked = case.parameters.get("tls")
    if asked is None:
        return None
    if asked not in ("on", "off"):
        raise wrong_value(case, "tls", "on or off")
    return asked == "on"


def never(case: Case) -> str | None:
    """Return why no link or front can ever serve a case's server; None if one can."""
    limits, tls = limits_of(case), tls_of(case)
    if limits is None and tls is None:
        return None
    if case.transport.system not in SYSTEMS:
        return "it connects to nothing: no link is between"
    if "s3" in case.transport.needs or case.transport.engine:
        return "it has connections to others than its database, which no link is put into"
    if tls is not None and tls_endpoints.tls_at(case.transport.endpoint) is None:
        return f"no client of {case.transport.endpoint} is known that uses TLS"
    return None


@contextmanager
def linked(settings: Settings, lab: Lab, cases: Sequence[Case], say: Callable[[str], None]) -> Iterator[Networks]:
    """Yield the links and fronts that runnable cases need; start no further ones.

    Raises LabError for invalid values.
    """
    over_links = sorted({case.transport.id for case in cases if limits_of(case)})
    over_fronts = any(tls_of(case) is not None for case in cases)
    found = Networks("no experiment asked for a link", "no experiment asked for TLS")
    if lab.name != "embedded":
        found.links = "links are made to the servers of the embedded lab alone: to others there is a network already"
        found.fronts = (
            "TLS is switched on and off before the servers of the embedded lab alone: of others name it in their "
            "addresses (sslmode=require, https://), a run each, and compare the two by lab compare"
        )
        yield found
        return
    with ExitStack() as stack:
        if over_links:
            found.links = stack.enter_context(links.opened(settings, say, users=over_links))
        if over_fronts:
            found.fronts = stack.enter_context(tls_endpoints.opened(settings, lab.endpoints))
        yield found


def _with_uri(job: DatabaseJob, uri: str) -> DatabaseJob:
    assert job.addresses
    return replace(job, addresses=replace(job.addresses, uri=uri))
