"""MinIO as a service of the embedded lab."""

from __future__ import annotations

import http.client
import os
from collections.abc import Sequence
from pathlib import Path

from harness.embedded.keeper import Command, Task
from harness.embedded.service import Service

_USER = "lab"
_OUTPUT = "output.txt"
_PORT = "port"


def service(program: Path) -> Service:
    """Return the service that a compiled MinIO is: one folder, no console, and no call to anywhere else."""

    def prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
        (folder / "data").mkdir()
        (folder / _PORT).write_text(str(ports[0]))
        command = [str(program), "server", "--quiet", "--address", f"127.0.0.1:{ports[0]}", str(folder / "data")]
        own = {
            "HOME": str(folder),
            "PATH": os.defpath,
            "MINIO_ROOT_USER": _USER,
            "MINIO_ROOT_PASSWORD": password,
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
    return {"s3": f"http://{_USER}:{password}@127.0.0.1:{ports[0]}"}
