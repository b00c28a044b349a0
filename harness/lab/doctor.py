"""Which parts are available: a lab's services and the unavailable transports, each with its fix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness import address, registry
from harness.embedded.keeper import ServiceError
from harness.lab import cluster, extras, labs, object_stores
from harness.lab.availability import reason_unavailable
from harness.lab.cluster import Cluster
from harness.lab.labs import Lab
from harness.model import LabError, ObjectStore, Server, SharedFolder
from harness.settings import Settings
from harness.systems import SYSTEMS
from harness.systems.system import System


@dataclass(frozen=True)
class Diagnosis:
    """One line of the doctor: the subject, whether it works, the finding, and the fix if it does not.

    `well` is None if an optional part is missing.
    """

    subject: str
    well: bool | None
    found: str


def examine(settings: Settings, lab: Lab) -> Iterator[Diagnosis]:
    """Examine a lab's services, the shared folder, the S3 server, and the transports that cannot run here."""
    servers: dict[str, Server] = {}
    for name, system in SYSTEMS.items():
        if name not in lab.systems:
            yield Diagnosis(name, False, "no address; set it in the environment (docs/reference/settings.md)")
            continue
        try:
            servers[name] = labs.asked(lab, name)
            yield Diagnosis(name, True, "; ".join(_words(system, servers[name], lab)))
        except LabError as error:
            yield Diagnosis(name, False, str(error))
    if lab.name == "embedded":
        yield from _installed(settings)
    for name in servers:
        if lab.io is not None and SYSTEMS[name].shares_folder:
            yield _shared_folder(SYSTEMS[name], lab.endpoints, lab.io)
    yield _s3(settings)
    yield Diagnosis("engines", True, _engines(cluster.engines(lab.name)))
    named = None
    if settings.cluster_address:
        try:
            named = cluster.of(settings)
        except LabError as error:
            yield Diagnosis("cluster", False, str(error))
    if named:
        yield _cluster(settings, lab, named)
    yield from _unavailable(lab, servers, object_stores.none_here(settings), named)
    yield from (Diagnosis(name, here or None, found) for name, here, found in extras.lines())


def _engines(versions: dict[str, str]) -> str:
    absent = ", ".join(engine for engine, version in versions.items() if version == cluster.ABSENT)
    present = [f"{engine} {version}" for engine, version in versions.items() if version != cluster.ABSENT]
    return "; ".join([*present, *([f"{cluster.ABSENT}: {absent}"] if absent else [])])


def _words(system: System, server: Server, lab: Lab) -> Iterator[str]:
    yield server.version
    if server.program:
        yield f"started as {server.program}"
    yield system.client.offers(server, lab.endpoints)


def _installed(settings: Settings) -> Iterator[Diagnosis]:
    """Name the installed servers on this machine that are not used, and how to use them."""
    for name, (variable, place) in labs.not_used(settings).items():
        try:
            said = SYSTEMS[name].installed.build(place) or "a server"
        except ServiceError as error:
            said = str(error)
        yield Diagnosis(f"installed {name}", None, f"not used: {said}; {variable}={place} starts it")


def _shared_folder(system: System, endpoints: dict[str, str], io: SharedFolder) -> Diagnosis:
    try:
        system.folder.check(endpoints, io)
    except LabError as error:
        return Diagnosis("shared folder", False, str(error))
    return Diagnosis("shared folder", True, f"{io.here}: each side reads what the other writes")


def _s3(settings: Settings) -> Diagnosis:
    if not (settings.s3_endpoint and settings.s3_access_key and settings.s3_secret_key):
        return Diagnosis("s3", True, object_stores.without_a_name(settings))
    if reason := object_stores.none_here(settings):
        return Diagnosis("s3", False, reason)
    try:
        keys = settings.s3_region, settings.s3_access_key, settings.s3_secret_key
        server = object_stores.check(settings, ObjectStore(settings.s3_endpoint, *keys))
    except LabError as error:
        return Diagnosis("s3", False, str(error))
    return Diagnosis("s3", True, f"{server.version}; the keys are accepted")


def _cluster(settings: Settings, lab: Lab, named: Cluster) -> Diagnosis:
    """Examine the cluster that the user named, and report its workers' addresses of the databases."""
    try:
        cluster.require_reached(named)
        seen = cluster.as_workers_see(settings, lab.endpoints)
    except LabError as error:
        return Diagnosis("cluster", False, str(error))
    there = ", ".join(f"{name} at {address.host_and_port(uri)}" for name, uri in seen.items())
    return Diagnosis("cluster", True, f"{named.address} answers; its workers look for {there}")


def _unavailable(lab: Lab, servers: dict[str, Server], no_s3: str | None, named: Cluster | None) -> Iterator[Diagnosis]:
    all_of_databases = [entry for entry in registry.select("*") if entry.system in SYSTEMS]
    entries = [entry for entry in all_of_databases if entry.system in servers]
    reasons = {entry.id: reason_unavailable(entry, lab, servers, no_s3, named) for entry in entries}
    missing: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        if reason:
            missing.setdefault(reason, []).append(name)
    can_run = sum(reason is None for reason in reasons.values())
    yield Diagnosis("transports", True, f"{can_run} of {len(all_of_databases)} can run here")
    for reason, names in missing.items():
        clients = ", ".join(dict.fromkeys(name.rpartition(".")[0] for name in names))
        yield Diagnosis(f"{len(names)} transports of {clients}", None, reason)
