"""The lab of a run: its own servers (embedded), or a user's servers named in the environment (external)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from harness.embedded.service import SHARED
from harness.lab import cluster
from harness.lab.cluster import Cluster
from harness.lab.packages import not_installed
from harness.lab.reference import answered
from harness.machine.stopping import on_signals
from harness.model import ENGINES, HERE, LabError, Server, SharedFolder, Transport
from harness.settings import Settings
from harness.systems import SYSTEMS
from harness.systems.system import System


@dataclass(frozen=True)
class Lab:
    """Addresses, the folder shared with a server (if any), and functions that handle dead servers.

    `folder` holds our servers' data; else None. `dead` quickly names the services whose process is gone. `revive`
    restarts them (or only the given ones) and returns their names. `end` kills one that hangs, with all its processes.
    `restart` stops one in an orderly way and starts it again. `log` is a service's log. None of these touch other
    people's servers, which have no `pids` and no `log`. `programs` names the servers that are a user's installed
    programs. `without_keys` are databases that take the keys of an S3 server from their environment and got none.
    `not_used` says how to select other installed programs.
    """

    name: str
    folder: Path | None
    endpoints: dict[str, str]
    io: SharedFolder | None
    dead: Callable[[], list[str]]
    revive: Callable[..., list[str]]
    pids: Callable[[], dict[str, int]] = dict
    end: Callable[[str], None] = lambda name: None
    restart: Callable[[str], None] | None = None
    log: Callable[[str], Path | None] = lambda name: None
    programs: Mapping[str, str] = field(default_factory=dict)
    without_keys: Collection[str] = ()
    not_used: Sequence[str] = ()

    @property
    def systems(self) -> list[str]:
        """The databases for which this lab has all addresses."""
        return [name for name, system in SYSTEMS.items() if set(system.endpoints) <= self.endpoints.keys()]


@contextmanager
def embedded(settings: Settings, systems: Collection[str] = tuple(SYSTEMS)) -> Iterator[Lab]:
    """Start an embedded lab of these databases, and stop it with everything it started at the end, however it ends."""
    from harness.lab.embedded import EmbeddedLab, ServiceError

    try:
        keys = _keys_of_s3(settings)
        installed = {
            name: SYSTEMS[name].installed.service(at, keys if SYSTEMS[name].keys_in_environment else {})
            for name, at in settings.installed.items()
            if name in systems
        }
        with on_signals(), EmbeddedLab(settings.state_dir, systems, installed) as servers:
            yield Lab(
                "embedded",
                servers.folder,
                servers.endpoints,
                _shared_folder(settings) or _own_shared_folder(servers.folder),
                servers.dead,
                servers.revive,
                lambda: servers.pids,
                servers.end,
                servers.restart,
                servers.log,
                {name: _program(SYSTEMS[name], service.said) for name, service in installed.items()},
                [name for name, system in SYSTEMS.items() if system.keys_in_environment and not keys],
                [f"{variable}={at}" for name, (variable, at) in not_used(settings).items() if name in systems],
            )
    except ServiceError as error:
        raise LabError(str(error)) from None


@contextmanager
def external(settings: Settings, systems: Collection[str] = tuple(SYSTEMS)) -> Iterator[Lab]:
    """Use the servers of these databases named in the environment. Raises LabError if none is named."""
    yield Lab("external", None, addresses(settings, systems), _shared_folder(settings), list, lambda names=None: [])


def addresses(settings: Settings, systems: Collection[str] = tuple(SYSTEMS)) -> dict[str, str]:
    """Return the addresses of these databases that the environment names. Raises LabError without one, or with some."""
    asked = [SYSTEMS[name] for name in systems]
    known = {name for system in asked for name in system.endpoints}
    endpoints = {name: uri for name, uri in settings.endpoints.items() if name in known}
    if not endpoints:
        raise LabError(f"--external: no server is set; set {', or '.join(map(variables, asked))}")
    for system in asked:
        found = [name for name in system.endpoints if name in endpoints]
        if found and len(found) < len(system.endpoints):
            raise LabError(f"--external: only {len(found)} of {variables(system)} is set; set all of them")
    return endpoints


@contextmanager
def compose(settings: Settings, systems: Collection[str] = tuple(SYSTEMS)) -> Iterator[Lab]:
    """Use the servers of the Compose lab, from inside its harness container. Raises LabError if none is named."""
    with external(settings, systems) as lab:
        yield replace(lab, name="compose")


def variables(system: System) -> str:
    """Name the variables with which a user sets a database's addresses."""
    return " and ".join(address.variable for address in system.addresses)


OPENED = {"embedded": embedded, "external": external, "compose": compose}


def _shared_folder(settings: Settings) -> SharedFolder | None:
    if settings.io_dir is None:
        return None
    return SharedFolder(str(settings.io_dir), settings.io_dir_server or str(settings.io_dir))


def _own_shared_folder(of_lab: Path) -> SharedFolder | None:
    """Return the folder that a server of the embedded lab shares with us, if any."""
    found = [of_lab / name / SHARED for name, system in SYSTEMS.items() if system.shares_folder]
    return next((SharedFolder(str(path), str(path)) for path in found if path.is_dir()), None)


def _keys_of_s3(settings: Settings) -> dict[str, str]:
    """Return the variables with which a server itself reaches an S3 server, if the environment names one."""
    if not (settings.s3_endpoint and settings.s3_access_key and settings.s3_secret_key):
        return {}
    return {
        "AWS_ENDPOINT_URL": settings.s3_endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": settings.s3_region,
        "AWS_ACCESS_KEY_ID": settings.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": settings.s3_secret_key,
    }


def _program(system: System, said: str) -> str:
    """Return which installed program a server is, without its path, because results are shared."""
    assert system.installed_at is not None
    return f"{system.installed_at.variable}{f' ({said})' if said else ''}"


def not_used(settings: Settings) -> dict[str, tuple[str, Path]]:
    """Return, by database, the variable and the path of an installed server that is not selected."""
    found = {
        name: (system.installed_at.variable, system.installed.found())
        for name, system in SYSTEMS.items()
        if system.installed_at and name not in settings.installed
    }
    return {name: (variable, places[0]) for name, (variable, places) in found.items() if places}


def check(lab: Lab) -> dict[str, Server]:
    """Ask every database of the lab for its description. Raises LabError at the first one that cannot be used."""
    return {name: asked(lab, name) for name in lab.systems}


def asked(lab: Lab, name: str) -> Server:
    """Ask a database of the lab for its description. Raises LabError if it cannot be used."""
    server = answered(name, partial(SYSTEMS[name].client.check, lab.endpoints))
    return replace(server, program=lab.programs.get(name, ""))


# Compare a transport's needs with the lab: the reason why it does not run here.

KEYS = ("LAB_S3_ENDPOINT", "LAB_S3_ACCESS_KEY", "LAB_S3_SECRET_KEY")


def reason_unavailable(
    entry: Transport,
    lab: Lab,
    servers: dict[str, Server],
    no_s3: str | None = None,
    named: Cluster | None = None,
    environment: str = HERE,
) -> str | None:
    """Return why this lab cannot run the transport, in one line, or None if it can.

    `no_s3` is the reason if the lab has no S3 server. `named` is the cluster that the user named. `environment` is the
    Python environment that a case asks for.
    """
    if reason := cluster.of_another_engine(entry, named) or not_installed(entry.requires, lab.name, environment):
        return reason
    if entry.engine == "spark" and (reason := cluster.no_java()):
        return reason
    if entry.system not in SYSTEMS:  # a lower bound of the machine
        return None
    if entry.endpoint not in lab.endpoints:
        return f"this lab has no {entry.endpoint} address"
    elsewhere = ("shared_io", "s3", *ENGINES)
    missing = [need for need in entry.needs if need not in elsewhere and need not in servers[entry.system].offers]
    if missing:
        lacks = f"the {entry.system} {servers[entry.system].version} server does not offer {', '.join(missing)}"
        fixes = SYSTEMS[entry.system].fixes
        return "; ".join([lacks, *(fixes[need][lab.name] for need in missing if need in fixes)])
    if "shared_io" in entry.needs and lab.io is None:
        return "no folder is shared with the server; set LAB_IO_DIR"
    if "s3" not in entry.needs:
        return None
    if not no_s3 and entry.system in lab.without_keys:
        return f"the {entry.system} server knows no S3 server; set {', '.join(KEYS)} to one"
    return no_s3
