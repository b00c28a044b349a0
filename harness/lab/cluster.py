"""Workers of engines: those of an existing cluster, or local ones on this machine.

LAB_CLUSTER_ADDRESS names a cluster by its scheduler's address. Its workers may reach the databases at other addresses
than this machine.
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
# By engine: the schemes of its scheduler's address, and the default port.
_SCHEDULERS = {
    "dask": Address("dask", "cluster_address", "", ("tcp", "tls"), 8786),
    "ray": Address("ray", "cluster_address", "", ("ray",), 10001),
    "spark": Address("spark", "cluster_address", "", ("spark",), 7077),
}
_MODULES = {"dask": "distributed", "ray": "ray", "spark": "pyspark", "daft": "daft"}  # modules of the engines and Daft


@dataclass(frozen=True)
class Cluster:
    """A cluster of an engine (see harness.model.ENGINES) and its scheduler's full address: scheme://host:port."""

    engine: str
    address: str


def of(settings: Settings) -> Cluster | None:
    """Return the cluster that the user named, or None. Raises LabError if the address belongs to no engine."""
    if settings.cluster_address is None:
        return None
    try:
        parts = urlsplit(settings.cluster_address)
        host, port, rest = parts.hostname or "", parts.port, parts.path.strip("/") + parts.query + parts.fragment
        engine = next((engine for engine, one in _SCHEDULERS.items() if parts.scheme in one.schemes), "")
    except ValueError:  # a port that is not a number, unclosed brackets
        host = rest = engine = ""
        port = None
    if not (engine and host) or port == 0 or rest or "@" in settings.cluster_address:
        raise LabError(
            f"{_SETTING}: not the address of a scheduler; give tcp://host:8786 or tls://host:8786 (Dask), "
            "ray://host:10001 or spark://host:7077, and nothing after the port"
        )
    named = f"[{host}]" if ":" in host else host
    return Cluster(engine, f"{parts.scheme}://{named}:{port or _SCHEDULERS[engine].port}")


def require_reached(cluster: Cluster) -> None:
    """Open and close a TCP connection to the scheduler. Raises LabError with host and port after at most 5 s."""
    try:
        address.reach(urlsplit(cluster.address), _SCHEDULERS[cluster.engine])
    except LabError as error:
        raise LabError(f"{error} ({_SETTING})") from None


def of_another_engine(entry: Transport, cluster: Cluster | None) -> str | None:
    """Return why a transport has no workers here, in one line, or None if it has them or needs none."""
    if cluster is None or entry.engine in ("", cluster.engine):
        return None
    return f"{_SETTING} names a scheduler of {cluster.engine}, not of {entry.engine}"


def workers(settings: Settings, entry: Transport, number: int, uri: str, folder: str) -> Workers:
    """Return the workers argument of a transport; `uri` is its database's address from here.

    Raises LabError for a wrong address.
    """
    if (cluster := of(settings)) is None:
        return Workers(number, uri, folder=folder)
    if named := as_workers_see(settings, {}).get(entry.endpoint):
        uri = SYSTEMS[entry.system].client.transport_uri(entry.endpoint, named)
    return Workers(number, uri, cluster.address, folder)


def as_workers_see(settings: Settings, endpoints: dict[str, str]) -> dict[str, str]:
    """Return these database addresses as a cluster's workers reach them. Raises LabError for a wrong one."""
    named = settings.endpoints_of_workers
    for known in (known for system in SYSTEMS.values() for known in system.addresses if known.name in named):
        address.split(named[known.name], replace(known, setting=setting_of_workers(known)))
    return endpoints | named


def no_java() -> str | None:
    """Return why Spark cannot start here, or None if there is a Java for it."""
    if java():
        return None
    return "Spark needs Java 17 or newer: install a JRE (Debian: default-jre-headless) or set JAVA_HOME"


ABSENT = "not installed"


def engines(lab: str) -> dict[str, str]:
    """Return the version of every installed engine, otherwise ABSENT; `lab` is the lab that asks."""
    found = {engine: not_installed([module], lab) for engine, module in _MODULES.items()}
    found["spark"] = found["spark"] or no_java()
    return {engine: ABSENT if reason else _version(_MODULES[engine]) for engine, reason in found.items()}


def _version(module: str) -> str:
    elsewhere = interpreters.of([module])
    return elsewhere.versions()[module] if elsewhere else version(module)
