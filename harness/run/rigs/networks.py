"""The network part of the database rig: a link, or TLS, between a case's worker and its server.

A case uses a link if it names an added round trip time or a rate. It uses a front of its server if it says whether its
connections have TLS. With both, TLS goes over the link. Other cases use neither.
"""

from __future__ import annotations

import json
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from harness.address import Address, Tls, host_and_port
from harness.embedded.keeper import Command, ServiceError, Task
from harness.embedded.service import Service
from harness.lab import links, tls_proxy
from harness.lab.embedded import EmbeddedLab
from harness.lab.labs import Lab
from harness.lab.links import Limits, Links, Off
from harness.lab.tls_proxy import FRONTS, READY, Front, NoCertificate, Seen
from harness.machine import variables
from harness.machine.stopping import on_signals
from harness.model import Case, LabError, Server
from harness.run.rigs.rig import NotNow, wrong_value
from harness.settings import Settings
from harness.systems import SYSTEMS
from harness.worker.contracts.databases import DatabaseJob
from harness.worker.messages import Numbers
from harness.worker.meters import tree_cpu_seconds

# TLS for the embedded lab's servers, which do not support it: a process in front of them terminates it.
#
# The wheel's Postgres is built without OpenSSL, and the ClickHouse gateway has no TLS either. Each server therefore
# gets two fronts, ports of one process (`harness/lab/tls_proxy.py`) that forwards all bytes. One front requires TLS,
# the other refuses it. The two differ only in TLS. docs/explanation/suites/tls.md lists the limits of such a front.

NAME = "front"
_OUTPUT = "seen.txt"
_LOOPBACK = "127.0.0.1"
_ADDRESSES: dict[str, Address] = {one.name: one for system in SYSTEMS.values() for one in system.addresses}


@dataclass
class Fronts:
    """The ports in front of a lab that end TLS. `lab` runs their process.

    A client connects to `before(...)`, and `Tls.in_uri` makes its address say whether to use TLS.
    """

    lab: EmbeddedLab
    _certified: list[str] = field(default_factory=list)
    _known: int = 0

    @property
    def folder(self) -> Path:
        """The folder of certificate and key."""
        return self.lab.folder / NAME

    @property
    def certificate_file(self) -> str:
        """The certificate that a client must trust."""
        return str(self.folder / tls_proxy.CERTIFICATE)

    @property
    def server(self) -> Server:
        """How results describe the fronts, among their servers."""
        return Server(f"{ssl.OPENSSL_VERSION} in front", frozenset(), {})

    def before(self, uri: str, on: bool) -> str:
        """Return a URI with host and port of the front of its server; start to record connections."""
        self._known = len(self._seen())
        parts = urlsplit(uri)
        credentials, at, _ = parts.netloc.rpartition("@")
        front = self.lab.endpoints[_of(host_and_port(uri), on)]
        return parts._replace(netloc=f"{credentials}{at}{front}").geturl()

    def certify(self, uri: str) -> None:
        """Make sure that the certificate covers the host of a URI, an IP address. Raises NoCertificate."""
        host = urlsplit(uri).hostname or ""
        if host not in self._certified:
            tls_proxy.make(self.folder, [*self._certified, host])
            self._certified.append(host)

    def used(self, uri: str, on: bool) -> dict[str, int | float]:
        """Return how many TLS connections arrived for a URI since `before`, the lowest version and the shortest key.

        Raises LabError if none arrived, or one was not as required.
        """
        port = int(self.lab.endpoints[_of(host_and_port(uri), on)].rpartition(":")[2])
        seen = [one for one in self._seen()[self._known :] if one.port == port]
        asked = "with TLS" if on else "without TLS"
        if not seen:
            raise LabError(f"no connection {asked} reached the server's front: the client went around it")
        if refused := [one.refused for one in seen if one.refused]:
            raise LabError(f"the front refused a connection {asked}: {refused[0]}")
        if not on:
            return {"tls_connections": 0}
        version = min(float(one.version.removeprefix("TLSv")) for one in seen)
        key_bits = min(one.key_bits for one in seen)
        return {"tls_connections": len(seen), "tls_version": version, "tls_key_bits": key_bits}

    def revive(self) -> list[str]:
        """Restart the process if it has ended; return its name."""
        return self.lab.revive()

    def _seen(self) -> list[Seen]:
        lines = (self.folder / _OUTPUT).read_text().splitlines()[1:]
        return [Seen(**json.loads(line)) for line in lines]


def tls_at(endpoint: str) -> Tls | None:
    """Return how the address of this name requests TLS; None if it cannot."""
    address = _ADDRESSES.get(endpoint)
    return address.tls if address else None


@contextmanager
def opened(settings: Settings, endpoints: Mapping[str, str]) -> Iterator[Fronts | str]:
    """Yield fronts of a lab's addresses, or the reason for none and the fix. They end with the block."""
    upstreams = {host_and_port(uri): tls for name, uri in endpoints.items() if (tls := tls_at(name))}
    try:
        with on_signals(), EmbeddedLab(settings.state_dir, (), {NAME: service(upstreams)}) as lab:
            made = Fronts(lab)
            try:
                made.certify(f"tcp://{_LOOPBACK}")
            except NoCertificate as error:
                yield str(error)
            else:
                yield made
    except ServiceError as error:
        raise LabError(str(error)) from None


def service(upstreams: Mapping[str, Tls]) -> Service:
    """Return the process in front of some servers (host:port), with two ports for each."""
    wanted = [(upstream, tls, on) for upstream, tls in upstreams.items() for on in (False, True)]

    def prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
        fronts = [
            Front(port, upstream, on, tls.request.hex(), tls.answer.hex())
            for port, (upstream, tls, on) in zip(ports, wanted, strict=True)
        ]
        (folder / FRONTS).write_text(json.dumps([asdict(front) for front in fronts]))
        return Task(
            folder=str(folder),
            log=str(folder / "server.log"),
            prepare=[],
            service=Command([sys.executable, "-m", "harness.lab.tls_proxy", str(folder)], output=str(folder / _OUTPUT)),
            stop=[("SIGTERM", 3.0)],
            environment=variables.environment_of_a_server(folder),
        )

    def endpoints(ports: Sequence[int], password: str) -> dict[str, str]:
        return {_of(upstream, on): f"{_LOOPBACK}:{port}" for port, (upstream, _, on) in zip(ports, wanted, strict=True)}

    return Service(
        len(wanted),
        prepare,
        _OUTPUT,
        lambda folder: (folder / _OUTPUT).read_text().startswith(READY),
        endpoints,
        lambda folder: None,
    )


def _of(upstream: str, on: bool) -> str:
    return f"{upstream} {'with' if on else 'without'} TLS"


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
        self._bytes_before, self._cpu_before = self.links.wire.bytes(), tree_cpu_seconds(self.links.wire.carrier)
        return replace(job, namespace=self.links.wire.namespace)

    def _asking(self, case: Case, job: DatabaseJob, reached: Fronts, on: bool) -> DatabaseJob:
        """Return a job whose client gets the TLS choice in its address; the front's CPU time counts as the server's."""
        asks = tls_at(case.transport.endpoint)
        if asks is None or job.addresses is None:
            return job
        reached.certify(job.addresses.uri)
        pids = [*(job.server_pids or []), reached.lab.pids[NAME]]
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
        spent = tree_cpu_seconds(self.links.wire.carrier)
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
    if tls is not None and tls_at(case.transport.endpoint) is None:
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
            found.fronts = stack.enter_context(opened(settings, lab.endpoints))
        yield found


def _with_uri(job: DatabaseJob, uri: str) -> DatabaseJob:
    assert job.addresses
    return replace(job, addresses=replace(job.addresses, uri=uri))
