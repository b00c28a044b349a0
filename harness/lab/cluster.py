"""Workers of engines: those of a cluster that is there already, or of our own on this machine.

A cluster is named by the address of its scheduler (LAB_CLUSTER_ADDRESS). Its workers may know the databases by other
addresses than this machine does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from urllib.parse import urlsplit

from harness import address
from harness.address import Address
from harness.lab import interpreters
from harness.lab.packages import not_installed
from harness.machine.variables import java
from harness.model import LabError, Transport, Workers
from harness.settings import Settings, setting_of_workers
from harness.systems import SYSTEMS

_SETTING = "LAB_CLUSTER_ADDRESS"
# By engine: the schemes of its scheduler's address, and its port where there is none in it.
_SCHEDULERS = {
    "dask": Address("dask", "cluster_address", "", ("tcp", "tls"), 8786),
    "ray": Address("ray", "cluster_address", "", ("ray",), 10001),
    "spark": Address("spark", "cluster_address", "", ("spark",), 7077),
}
_MODULES = {"dask": "distributed", "ray": "ray", "spark": "pyspark", "daft": "daft"}  # what the engines and Daft are


@dataclass(frozen=True)
class Cluster:
    """A cluster of an engine (see harness.model.ENGINES) and the whole address of its scheduler: scheme://host:port."""

    engine: str
    address: str


def of(settings: Settings) -> Cluster | None:
    """Return the cluster that a person has named, or None. Raises LabError where the address is none of an engine."""
    if settings.cluster_address is None:
        return None
    try:
        parts = urlsplit(settings.cluster_address)
        host, port, rest = parts.hostname or "", parts.port, parts.path.strip("/") + parts.query + parts.fragment
        engine = next((engine for engine, one in _SCHEDULERS.items() if parts.scheme in one.schemes), "")
    except ValueError:  # a port that is no number, brackets that do not close
        host = rest = engine = ""
        port = None
    if not (engine and host) or port == 0 or rest or "@" in settings.cluster_address:
        raise LabError(
            f"{_SETTING}: expected the address of a scheduler like tcp://host:8786 or tls://host:8786 (Dask), "
            "ray://host:10001 or spark://host:7077, and nothing beside it; check the scheme, host and port"
        )
    named = f"[{host}]" if ":" in host else host
    return Cluster(engine, f"{parts.scheme}://{named}:{port or _SCHEDULERS[engine].port}")


def require_reached(cluster: Cluster) -> None:
    """Open and close a TCP connection to the scheduler. Raises LabError naming host and port after at most 5 s."""
    try:
        address.reach(urlsplit(cluster.address), _SCHEDULERS[cluster.engine])
    except LabError as error:
        raise LabError(f"{error} ({_SETTING})") from None


def of_another_engine(entry: Transport, cluster: Cluster | None) -> str | None:
    """Return why a transport has no workers here, in one line, or None when it has them or needs none."""
    if cluster is None or entry.engine in ("", cluster.engine):
        return None
    return f"{_SETTING} names a scheduler of {cluster.engine}, not of {entry.engine}"


def workers(settings: Settings, entry: Transport, number: int, uri: str, folder: str) -> Workers:
    """Return the workers that a transport is called with; `uri` is its database as it is connected to from here.

    Raises LabError where an address is wrong.
    """
    if (cluster := of(settings)) is None:
        return Workers(number, uri, folder=folder)
    if named := as_workers_see(settings, {}).get(entry.endpoint):
        uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, named)
    return Workers(number, uri, cluster.address, folder)


def as_workers_see(settings: Settings, endpoints: dict[str, str]) -> dict[str, str]:
    """Return these addresses of databases as the workers of a cluster see them. Raises LabError where one is wrong."""
    named = settings.endpoints_of_workers
    for known in (known for system in SYSTEMS.values() for known in system.addresses if known.name in named):
        address.split(named[known.name], replace(known, setting=setting_of_workers(known)))
    return endpoints | named


def no_java() -> str | None:
    """Return why Spark cannot start here, or None where there is a Java for it."""
    if java():
        return None
    return "Spark needs Java 17 or newer, found none: install a JRE (Debian: default-jre-headless) or set JAVA_HOME"


def engines(lab: str) -> dict[str, str]:
    """Return the version of every engine that is installed, else "not installed"; `lab` is the one that asks."""
    found = {engine: not_installed([module], lab) for engine, module in _MODULES.items()}
    found["spark"] = found["spark"] or no_java()
    return {engine: "not installed" if reason else _version(_MODULES[engine]) for engine, reason in found.items()}


def _version(module: str) -> str:
    elsewhere = interpreters.of([module])
    return elsewhere.versions()[module] if elsewhere else version(module)
