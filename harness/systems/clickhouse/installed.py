"""A ClickHouse server that the user has installed: one program, as from `curl https://clickhouse.com/ | sh`.

It runs with its built-in defaults, which the lab measures. This is its whole configuration:

| setting                  | value        | why                                                          |
|--------------------------|--------------|--------------------------------------------------------------|
| listen_host              | 127.0.0.1    | nothing outside this machine may connect                     |
| http_port, tcp_port      | free ones    | several labs run on one machine; no other protocol is opened |
| path and other folders   | the lab's    | all its files are removed with the lab                       |
| users                    | `lab` alone  | with a generated password, of which the file has the hash    |
| logger                   | information  | to the console: a log is one file, like all services here   |
| mark_cache_size          | 5368709120   | its default, set because old servers need it                 |
| timezone                 | UTC          | like every server of the lab                                 |
| shutdown_wait_unfinished | 1            | a stop does not wait longer for sessions                     |

Without the file it would have the same defaults and a user without a password. The official image stores query logs in
system tables, which this server does not.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import escape

from harness.embedded.keeper import Command, ServiceError, Task
from harness.embedded.service import Service, version_said
from harness.machine import variables
from harness.systems.clickhouse import SYSTEM
from harness.systems.clickhouse.service import SERVICE

_OUTPUT, _PORTS = "output.txt", "ports"
_PROBE_SECONDS = 1.0
# The root element has its old name, which every version accepts.
_CONFIGURATION = """\
<yandex>
  <logger><level>information</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host>
  <http_port>{http}</http_port>
  <tcp_port>{native}</tcp_port>
  <path>{folder}/data/</path>
  <tmp_path>{folder}/data/tmp/</tmp_path>
  <user_files_path>{folder}/data/user_files/</user_files_path>
  <format_schema_path>{folder}/data/format_schemas/</format_schema_path>
  <mark_cache_size>5368709120</mark_cache_size>
  <timezone>UTC</timezone>
  <shutdown_wait_unfinished>1</shutdown_wait_unfinished>
  <users>
    <lab>
      <password_sha256_hex>{password}</password_sha256_hex>
      <networks><ip>::/0</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
    </lab>
  </users>
  <profiles><default/></profiles>
  <quotas><default/></quotas>
</yandex>
"""


def service(place: Path, environment: Mapping[str, str]) -> Service:
    """Return the service that runs the program. Raises ServiceError if it is not ClickHouse."""
    program = _program(place)

    def prepare(folder: Path, ports: Sequence[int], password: str) -> Task:
        (folder / "data").mkdir(mode=0o700)
        (folder / _PORTS).write_text(" ".join(map(str, ports)))
        configuration = folder / "config.xml"
        with open(os.open(configuration, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(
                _CONFIGURATION.format(
                    http=ports[0],
                    native=ports[1],
                    folder=escape(str(folder)),
                    password=hashlib.sha256(password.encode()).hexdigest(),
                )
            )
        return Task(
            folder=str(folder),
            log=str(folder / "server.log"),
            prepare=[],
            service=Command([*_server(program), f"--config-file={configuration}"], output=str(folder / _OUTPUT)),
            stop=[("SIGTERM", 5.0)],
            # Its watchdog would be a parent that survives a kill -9 and hides the server from its keeper.
            environment={
                **variables.environment_of_a_server(folder),
                **environment,
                "CLICKHOUSE_WATCHDOG_ENABLE": "0",
            },
        )

    return replace(SERVICE, prepare=prepare, ready_file=_OUTPUT, is_ready=_is_ready, said=build(place))


def build(place: Path) -> str:
    """Return the server's version string; a version before 2019 does not support the query."""
    return version_said(_program(place), [*_server(place)[1:], "--version"])


def found() -> list[Path]:
    """Return the program in PATH, if there is one."""
    at = (shutil.which(name) for name in ("clickhouse", "clickhouse-server"))
    return [Path(path) for path in at if path][:1]


def _program(place: Path) -> Path:
    if not (place.is_file() and os.access(place, os.X_OK)):
        found = "is a folder" if place.is_dir() else "is not executable" if place.exists() else "does not exist"
        assert SYSTEM.installed_at is not None
        raise ServiceError(f"{SYSTEM.installed_at.variable}: {place} {found}; give the program `clickhouse`")
    return place


def _server(program: Path) -> list[str]:
    """Return the start of the command: one program contains all of ClickHouse, unless it has a part's name."""
    return [str(program)] if program.name.endswith("-server") else [str(program), "server"]


def _is_ready(folder: Path) -> bool:
    """Return whether both ports answer: /ping over HTTP, and a connection to the native one."""
    http_port, native_port = map(int, (folder / _PORTS).read_text().split())
    probe = http.client.HTTPConnection("127.0.0.1", http_port, timeout=_PROBE_SECONDS)
    try:
        probe.request("GET", "/ping")
        if probe.getresponse().status != http.client.OK:
            return False
        with socket.create_connection(("127.0.0.1", native_port), timeout=_PROBE_SECONDS):
            return True
    except (OSError, http.client.HTTPException):
        return False
    finally:
        probe.close()
