"""What is there and what is not: every service of a lab, and the ways that makes unavailable, each with its fix."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness import object_stores, registry
from harness.availability import reason_unavailable
from harness.labs import Lab
from harness.model import LabError, Server, SharedFolder
from harness.settings import Settings
from harness.systems import clickhouse, postgres, s3
from harness.systems.reference import answered
from harness.systems.s3 import ObjectStore
from harness.systems.tables import SYSTEMS
from harness.transports.postgres.sql import literal

# The formats that transports of the lab use; a server without one of them is not the one we know.
_FORMATS = ("ArrowStream", "CSV", "Native", "Parquet", "TabSeparated")


@dataclass(frozen=True)
class Finding:
    """One line of the doctor: what was looked at, whether it is well, what was found and (if not well) what to do."""

    subject: str
    well: bool
    found: str


def examine(settings: Settings, lab: Lab) -> Iterator[Finding]:
    """Look at every service of a lab, the shared folder, the S3 server, and the ways that cannot run here."""
    servers: dict[str, Server] = {}
    for name in SYSTEMS:
        if name not in lab.systems:
            yield Finding(name, False, "no address; set it in the environment (docs/settings.md)")
            continue
        try:
            servers[name] = answered(name, partial(SYSTEMS[name].check, lab.endpoints))
            yield Finding(name, True, f"{servers[name].version}; {_OFFERS[name](servers[name], lab.endpoints)}")
        except LabError as error:
            yield Finding(name, False, str(error))
    if lab.io is not None and "postgres" in servers:
        yield _shared_folder(lab.endpoints, lab.io)
    yield _s3(settings)
    yield from _unavailable(lab, servers, None if settings.s3_endpoint else object_stores.none_here(settings))


def _postgres_offers(server: Server, _: dict[str, str]) -> str:
    return "extensions: " + ", ".join(sorted(server.offers - {"postgres"}))


def _clickhouse_offers(_: Server, endpoints: dict[str, str]) -> str:
    client = clickhouse.open_connection(endpoints)
    try:
        rows = client.query("SELECT name FROM system.formats WHERE is_input AND is_output").result_rows
    finally:
        client.close()
    offered = {row[0] for row in rows}
    missing = [name for name in _FORMATS if name not in offered]
    return "formats: " + ", ".join(sorted(offered & set(_FORMATS))) + (f"; missing: {missing}" if missing else "")


_OFFERS = {"postgres": _postgres_offers, "clickhouse": _clickhouse_offers}


def _shared_folder(endpoints: dict[str, str], io: SharedFolder) -> Finding:
    """Let each side write a file that the other reads."""
    ours, theirs = (f"doctor-{uuid.uuid4().hex}" for _ in range(2))
    from adbc_driver_manager import Error

    connection = postgres.open_connection(endpoints)
    try:
        Path(io.here, ours).write_text("lab")
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT pg_read_file({literal(f'{io.there}/{ours}')})")
            cursor.fetchall()
            cursor.execute(f"COPY (SELECT 1) TO {literal(f'{io.there}/{theirs}')}")
        Path(io.here, theirs).read_text()
    except (OSError, Error) as error:
        first = str(error).strip().partition("\n")[0]
        return Finding(
            "shared folder", False, f"{io.here}: {first}; the server and uid {os.getuid()} must both write and read it"
        )
    finally:
        connection.close()
        for name in (ours, theirs):
            Path(io.here, name).unlink(missing_ok=True)
    return Finding("shared folder", True, f"{io.here}: each side reads what the other writes")


def _s3(settings: Settings) -> Finding:
    if not (settings.s3_endpoint and settings.s3_access_key and settings.s3_secret_key):
        return Finding("s3", True, object_stores.without_a_name(settings))
    try:
        keys = settings.s3_region, settings.s3_access_key, settings.s3_secret_key
        server = s3.check(ObjectStore(settings.s3_endpoint, *keys))
    except LabError as error:
        return Finding("s3", False, str(error))
    return Finding("s3", True, f"{server.version}; the keys are accepted")


def _unavailable(lab: Lab, servers: dict[str, Server], no_s3: str | None) -> Iterator[Finding]:
    all_of_databases = [entry for entry in registry.select("*") if entry.system in SYSTEMS]
    entries = [entry for entry in all_of_databases if entry.system in servers]
    reasons = {entry.id: reason_unavailable(entry, lab, servers, no_s3) for entry in entries}
    missing = {name: reason for name, reason in reasons.items() if reason}
    yield Finding("ways", True, f"{len(reasons) - len(missing)} of {len(all_of_databases)} can run here")
    for name, reason in sorted(missing.items()):
        yield Finding(name, True, f"unavailable: {reason}{_fix(reason)}")


def _fix(reason: str) -> str:
    if "pg_parquet" not in reason:
        return ""
    return (
        "; fix: put its Debian package into images/postgres/packages, run make clean and make up "
        "(or CREATE EXTENSION pg_parquet where it is installed)"
    )
