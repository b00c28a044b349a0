"""TLS to the servers of the embedded lab, which have none of their own: it ends in a process in front of them.

Postgres of the wheel is built without OpenSSL, and the gateway of ClickHouse has no TLS either. So each server gets two
fronts, ports of one process (`front.py`) that hands on all that comes: one whose clients have to use TLS, one whose
clients have none. What runs over the two differs in TLS alone. docs/explanation/suites/tls.md says
what such a front is not.
"""

from __future__ import annotations

import json
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from harness.address import Address, Tls, host_and_port
from harness.embedded.keeper import Command, ServiceError, Task
from harness.embedded.service import Service
from harness.lab import certificate
from harness.lab.certificate import NoCertificate
from harness.lab.embedded import EmbeddedLab
from harness.lab.front import FRONTS, READY, Front, Seen
from harness.machine import variables
from harness.machine.stopping import on_signals
from harness.model import LabError, Server
from harness.settings import Settings
from harness.systems import SYSTEMS

NAME = "front"
_OUTPUT = "seen.txt"
_LOOPBACK = "127.0.0.1"
_ADDRESSES: dict[str, Address] = {one.name: one for system in SYSTEMS.values() for one in system.addresses}


@dataclass
class Fronts:
    """The fronts of the addresses of a lab, by name; `lab` has their process.

    A client goes to `before(...)` and is told by `Tls.in_uri` what to do there.
    """

    lab: EmbeddedLab
    _certified: list[str] = field(default_factory=list)
    _known: int = 0

    @property
    def folder(self) -> Path:
        """Where certificate and key are."""
        return self.lab.folder / NAME

    @property
    def certificate_file(self) -> str:
        """The certificate that a client is to trust."""
        return str(self.folder / certificate.CERTIFICATE)

    @property
    def server(self) -> Server:
        """What they are, as results say it of servers."""
        return Server(f"{ssl.OPENSSL_VERSION} in front", frozenset(), {})

    def before(self, uri: str, on: bool) -> str:
        """Return a URI with host and port of the front of what it names; begin to look who comes."""
        self._known = len(self._seen())
        parts = urlsplit(uri)
        credentials, at, _ = parts.netloc.rpartition("@")
        front = self.lab.endpoints[_of(host_and_port(uri), on)]
        return parts._replace(netloc=f"{credentials}{at}{front}").geturl()

    def certify(self, uri: str) -> None:
        """See to it that the certificate is for the host of a URI, an IP address. Raises NoCertificate."""
        host = urlsplit(uri).hostname or ""
        if host not in self._certified:
            certificate.make(self.folder, [*self._certified, host])
            self._certified.append(host)

    def used(self, uri: str, on: bool) -> dict[str, int | float]:
        """Return how many connections with TLS have come for a URI since `before`, the lowest version and shortest key.

        Raises LabError where none has come, or one was not as it was to be.
        """
        port = int(self.lab.endpoints[_of(host_and_port(uri), on)].rpartition(":")[2])
        seen = [one for one in self._seen()[self._known :] if one.port == port]
        asked = "with TLS" if on else "without TLS"
        if not seen:
            raise LabError(f"expected connections {asked} at the server's front, found none: the client went around it")
        if refused := [one.refused for one in seen if one.refused]:
            raise LabError(f"expected connections {asked} alone, one was refused: {refused[0]}")
        if not on:
            return {"tls_connections": 0}
        version = min(float(one.version.removeprefix("TLSv")) for one in seen)
        key_bits = min(one.key_bits for one in seen)
        return {"tls_connections": len(seen), "tls_version": version, "tls_key_bits": key_bits}

    def dead(self) -> bool:
        """Say whether the process has ended; cheap."""
        return bool(self.lab.dead())

    def revive(self) -> list[str]:
        """Bring the process back where it has ended; return its name."""
        return self.lab.revive() if self.dead() else []

    def _seen(self) -> list[Seen]:
        lines = (self.folder / _OUTPUT).read_text().splitlines()[1:]
        return [Seen(**json.loads(line)) for line in lines]


def tls_of(endpoint: str) -> Tls | None:
    """Return how the address of this name asks for TLS; None where it does not."""
    address = _ADDRESSES.get(endpoint)
    return address.tls if address else None


@contextmanager
def opened(settings: Settings, endpoints: Mapping[str, str]) -> Iterator[Fronts | str]:
    """Yield fronts of the addresses of a lab, or why there are none and what to do. They end with the block."""
    upstreams = {host_and_port(uri): tls for name, uri in endpoints.items() if (tls := tls_of(name))}
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
    """Return the process that stands in front of some servers (host:port), at two ports each."""
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
            service=Command([sys.executable, "-m", "harness.lab.front", str(folder)], output=str(folder / _OUTPUT)),
            stop=[("SIGTERM", 3.0)],
            environment=variables.environment_of_a_server(folder),
        )

    def endpoints(ports: Sequence[int], password: str) -> dict[str, str]:
        return {_of(upstream, on): f"{_LOOPBACK}:{port}" for port, (upstream, _, on) in zip(ports, wanted, strict=True)}

    return Service(len(wanted), prepare, _OUTPUT, _is_ready, endpoints, lambda folder: None)


def _of(upstream: str, on: bool) -> str:
    return f"{upstream} {'with' if on else 'without'} TLS"


def _is_ready(folder: Path) -> bool:
    return (folder / _OUTPUT).read_text().startswith(READY)
