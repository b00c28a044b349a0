"""S3 servers as services of the embedded lab: versitygw, and MinIO because a published benchmark uses it."""

from __future__ import annotations

import hashlib
import http.client
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.embedded.keeper import Command, Task
from harness.embedded.service import Service
from harness.lab.go_programs import MINIO, VERSITYGW, GoProgram

_KEY_LENGTH = 20  # maximum length of an access key
_OUTPUT = "output.txt"
_PORT = "port"


@dataclass(frozen=True)
class S3Server:
    """A server that the lab compiles: how to start it, and how it reports that it is ready.

    `arguments(address, data)` are its program's arguments; it stores objects in the folder `data`. `keys` are the names
    of the variables with its access key and secret key.
    """

    title: str
    program: GoProgram
    arguments: Callable[[str, Path], list[str]]
    keys: tuple[str, str]
    health: str
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The name and version for results: neither server reports its version to a client."""
        return f"{self.title} {self.program.version}"


def _of_versitygw(address: str, data: Path) -> list[str]:
    """Return arguments for persistent connections, as all clients request, and for any file system.

    Without a sidecar it needs extended attributes, which some file systems lack.
    """
    (metadata := data.with_name("metadata")).mkdir()
    listen = ["--port", address, "--quiet", "--keep-alive", "--health", "/health"]
    return [*listen, "posix", "--sidecar", str(metadata), str(data)]


SERVERS = {
    "versitygw": S3Server(
        "versitygw", VERSITYGW, _of_versitygw, ("ROOT_ACCESS_KEY_ID", "ROOT_SECRET_ACCESS_KEY"), "/health"
    ),
    "minio": S3Server(
        "MinIO",
        MINIO,
        lambda address, data: ["server", "--quiet", "--address", address, str(data)],
        ("MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD"),
        "/minio/health/ready",
        {"MINIO_BROWSER": "off", "MINIO_UPDATE": "off"},  # no console, and no calls to other hosts
    ),
}


def service(server: S3Server, program: Path) -> Service:
    """Return the service that runs a compiled server."""

    def prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
        (folder / "data").mkdir()
        (folder / _PORT).write_text(str(ports[0]))
        command = [str(program), *server.arguments(f"127.0.0.1:{ports[0]}", folder / "data")]
        own = {"HOME": str(folder), "PATH": os.defpath, **server.environment}
        return Task(
            folder=str(folder),
            log=str(folder / "server.log"),
            prepare=[],
            service=Command(command, output=str(folder / _OUTPUT)),
            stop=[("SIGTERM", 3.0)],
            environment=own | dict(zip(server.keys, _keys(password), strict=True)),
        )

    return Service(1, prepare, _OUTPUT, partial(_is_ready, server.health), _endpoints, lambda folder: None)


def _is_ready(health: str, folder: Path) -> bool:
    probe = http.client.HTTPConnection("127.0.0.1", int((folder / _PORT).read_text()), timeout=1.0)
    try:
        probe.request("GET", health)
        answer = probe.getresponse()
        # MinIO answers 200 before it accepts requests, with a header that says so.
        return answer.status == http.client.OK and answer.getheader("X-Minio-Server-Status") is None
    except OSError:
        return False
    finally:
        probe.close()


def _endpoints(ports: Sequence[int], password: str) -> dict[str, str]:
    access_key, secret_key = _keys(password)
    return {"s3": f"http://{access_key}:{secret_key}@127.0.0.1:{ports[0]}"}


def _keys(password: str) -> tuple[str, str]:
    """Return an access key and a secret key. Both are secret: neither reveals the other or the password.

    In MinIO's last version the access key alone is enough to write objects: CVE-2026-41145, CVE-2026-40344.
    """
    digest = hashlib.sha512(password.encode()).hexdigest()
    return f"lab{digest[: _KEY_LENGTH - 3]}", digest[_KEY_LENGTH:][:40]
