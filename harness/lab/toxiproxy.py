"""Toxiproxy (https://github.com/Shopify/toxiproxy) as a service of the embedded lab, and the links it provides."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from harness.embedded.keeper import Command, Task
from harness.embedded.service import Service
from harness.model import Facts, LabError

_OUTPUT = "output.txt"
_PORT = "port"
_PATIENCE = 5.0


def service(program: Path) -> Service:
    """Return the service that runs a compiled toxiproxy: its API and each link have a loopback port."""

    def prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
        (folder / _PORT).write_text(str(ports[0]))
        command = [str(program), "-host", "127.0.0.1", "-port", str(ports[0])]
        return Task(
            folder=str(folder),
            log=str(folder / "server.log"),
            prepare=[],
            service=Command(command, output=str(folder / _OUTPUT)),
            stop=[("SIGTERM", 3.0)],
            environment={"HOME": str(folder), "PATH": os.defpath, "LOG_LEVEL": "error"},
        )

    return Service(
        1,
        prepare,
        _OUTPUT,
        _is_ready,
        lambda ports, password: {"toxiproxy": f"http://127.0.0.1:{ports[0]}"},
        lambda folder: None,
    )


def _is_ready(folder: Path) -> bool:
    try:
        return _ask(int((folder / _PORT).read_text()), "GET", "/version") is not None
    except OSError:
        return False


def link(api: str, name: str, upstream: str, latency_ms: int, bytes_per_s: int, buffered: bool = False) -> str:
    """Create a TCP link to `upstream` (host:port) and return its address on this machine, host:port.

    Every answer arrives `latency_ms` later. Each connection carries at most `bytes_per_s` in each direction (toxiproxy
    has no limit for all together). 0 adds and limits nothing. `buffered` puts a queue of up to 32 MB in front of the
    limit in each direction. Without the queue the limit pauses while a piece is received, and less gets through.
    """
    port = urlsplit(api).port or 0
    proxy = {"name": name, "listen": "127.0.0.1:0", "upstream": upstream, "enabled": True}
    made = _ask(port, "POST", "/proxies", proxy)
    toxics: list[Facts] = []
    for way, latency in (("upstream", 0), ("downstream", latency_ms)):
        if latency or (buffered and bytes_per_s):  # the latency toxic provides the queue: 1,024 pieces of at most 32 kB
            toxics.append({"type": "latency", "stream": way, "attributes": {"latency": latency}})
    if bytes_per_s:
        rate = {"rate": bytes_per_s // 1_000}  # in KB/s
        toxics += [{"type": "bandwidth", "stream": way, "attributes": rate} for way in ("upstream", "downstream")]
    for toxic in toxics:
        _ask(port, "POST", f"/proxies/{name}/toxics", toxic)
    return str(made["listen"])


def _ask(port: int, method: str, path: str, body: Facts | None = None) -> Facts:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    try:
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status >= http.client.BAD_REQUEST:
        raise LabError(f"toxiproxy: {method} {path}: {answer.status} {text.decode(errors='replace').strip():.200}")
    found: Facts = json.loads(text)
    return found
