"""The ClickHouse gateway as a service of the embedded lab."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.embedded.keeper import Command, Task
from harness.embedded.service import Service
from harness.machine import variables


def _prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
    """Describe the gateway; `ports` are HTTP and native. The password is in a file, not in the command."""
    users = folder / "users.json"
    with open(os.open(users, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        json.dump({"lab": password}, file)
    (folder / "data").mkdir(mode=0o700)
    gateway = [sys.executable, "-m", "harness.systems.clickhouse.gateway", "--path", str(folder / "data")]
    gateway += ["--http-port", str(ports[0]), "--native-port", str(ports[1]), "--users-file", str(users)]
    return Task(
        folder=str(folder),
        log=str(folder / "server.log"),
        prepare=[],
        service=Command(gateway, output=str(folder / "ready.json")),
        stop=[("SIGTERM", 3.0)],
        environment=variables.environment_of_a_server(folder),
    )


def _endpoints(ports: Sequence[int], password: str) -> dict[str, str]:
    """The gateway's two addresses."""
    return {
        "clickhouse_http": f"http://lab:{password}@127.0.0.1:{ports[0]}",
        "clickhouse_native": f"clickhouse://lab:{password}@127.0.0.1:{ports[1]}",
    }


SERVICE = Service(
    2,
    _prepare,
    "ready.json",  # the gateway's standard output: one line when it is ready
    lambda folder: (folder / "ready.json").read_bytes().endswith(b"\n"),
    _endpoints,
    lambda folder: None,
)
