"""TLS for the embedded lab's servers, which do not support it: a process in front of them terminates it.

The wheel's Postgres is built without OpenSSL, and the ClickHouse gateway has no TLS either. Each server therefore gets
two fronts, ports of one process (`tls_proxy.py`) that forwards all bytes. One front requires TLS, the other refuses it.
The two differ only in TLS. docs/explanation/suites/tls.md lists the limits of such a front.
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
from harness.lab import tls_proxy
from harness.lab.embedded import EmbeddedLab
from harness.lab.tls_proxy import FRONTS, READY, Front, NoCertificate, Seen
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
