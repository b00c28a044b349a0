"""MinIO as a service of the embedded lab."""

from __future__ import annotations

import hashlib
import http.client
import os
from collections.abc import Sequence
from pathlib import Path

from harness.embedded.keeper import Command, Task
from harness.embedded.service import Service

_KEY_LENGTH = 20  # of an access key, at most
_OUTPUT = "output.txt"
_PORT = "port"


def service(program: Path) -> Service:
    """Return the service that a compiled MinIO is: one folder, no console, and no call to anywhere else."""

    def prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
        (folder / "data").mkdir()
        (folder / _PORT).write_text(str(ports[0]))
        user, secret = _keys(password)
        command = [str(program), "server", "--quiet", "--address", f"127.0.0.1:{ports[0]}", str(folder / "data")]
        own = {
            "HOME": str(folder),
            "PATH": os.defpath,
            "MINIO_ROOT_USER": user,
            "MINIO_ROOT_PASSWORD": secret,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
        }
        return Task(
            folder=str(folder),
            log=str(folder / "server.log"),
            prepare=[],
            service=Command(command, output=str(folder / _OUTPUT)),
            stop=[("SIGTERM", 3.0)],
            environment=own,
        )

    return Service(1, prepare, _OUTPUT, _is_ready, _endpoints, lambda folder: None)


def _is_ready(folder: Path) -> bool:
    probe = http.client.HTTPConnection("127.0.0.1", int((folder / _PORT).read_text()), timeout=1.0)
    try:
        probe.request("GET", "/minio/health/ready")
        answer = probe.getresponse()
        # It answers 200 before it takes requests, and says so in a header.
        return answer.status == http.client.OK and answer.getheader("X-Minio-Server-Status") is None
    except OSError:
        return False
    finally:
        probe.close()


def _endpoints(ports: Sequence[int], password: str) -> dict[str, str]:
    user, secret = _keys(password)
    return {"s3": f"http://{user}:{secret}@127.0.0.1:{ports[0]}"}


def _keys(password: str) -> tuple[str, str]:
    """Return an access key and a secret key, of which neither tells the other or the password: both are secret.

    In the last version the access key alone is enough to write objects: CVE-2026-41145, CVE-2026-40344.
    """
    digest = hashlib.sha512(password.encode()).hexdigest()
    return f"lab{digest[: _KEY_LENGTH - 3]}", digest[_KEY_LENGTH:][:40]
