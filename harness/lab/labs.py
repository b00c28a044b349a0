"""The lab a run uses: servers of its own (embedded), or somebody's servers named in the environment (external)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.lab.reference import answered
from harness.machine.stopping import on_signals
from harness.model import LabError, Server, SharedFolder
from harness.settings import Settings
from harness.systems import SYSTEMS
from harness.systems.system import System


@dataclass(frozen=True)
class Lab:
    """Addresses, the folder shared with a server (if any), and what to do about servers that died.

    `folder` holds the data of servers that are ours; None for others.
    `dead` names the services whose process is gone, cheaply; `revive` brings them (or only the given ones) back and
    returns their names; `end` kills one that hangs, with all its processes; `restart` stops one in an orderly way and
    starts it again; `log` is what one writes into. Nothing of that is done to servers that are not ours, and they have
    no `pids` and no `log`.
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

    @property
    def systems(self) -> list[str]:
        """The databases that this lab has all addresses of."""
        return [name for name, system in SYSTEMS.items() if set(system.endpoints) <= self.endpoints.keys()]


@contextmanager
def embedded(settings: Settings) -> Iterator[Lab]:
    """Start the embedded lab, and stop it with everything it started at the end, however that comes."""
    from harness.lab.embedded import EmbeddedLab, ServiceError

    try:
        with on_signals(), EmbeddedLab(settings.state_dir) as servers:
            yield Lab(
                "embedded",
                servers.folder,
                servers.endpoints,
                _shared_folder(settings),
                servers.dead,
                servers.revive,
                lambda: servers.pids,
                servers.end,
                servers.restart,
                servers.log,
            )
    except ServiceError as error:
        raise LabError(str(error)) from None


@contextmanager
def external(settings: Settings) -> Iterator[Lab]:
    """Use the servers named in the environment. Raises LabError when none is named."""
    endpoints = settings.endpoints
    if not endpoints:
        needed = ", or ".join(map(variables, SYSTEMS.values()))
        raise LabError(f"--external needs {needed}, in the environment; found none of them")
    for system in SYSTEMS.values():
        found = [name for name in system.endpoints if name in endpoints]
        if found and len(found) < len(system.endpoints):
            raise LabError(f"expected all of {variables(system)}, found only {len(found)} of them")
    yield Lab("external", None, endpoints, _shared_folder(settings), list, lambda names=None: [])


@contextmanager
def compose(settings: Settings) -> Iterator[Lab]:
    """Use the servers of the Compose lab, from inside its harness container. Raises LabError when none is named."""
    with external(settings) as lab:
        yield replace(lab, name="compose")


def variables(system: System) -> str:
    """Name the variables in which a person sets the addresses of a database."""
    return " and ".join(f"LAB_{address.setting.upper()}" for address in system.addresses)


OPENED = {"embedded": embedded, "external": external, "compose": compose}


def _shared_folder(settings: Settings) -> SharedFolder | None:
    if settings.io_dir is None:
        return None
    return SharedFolder(str(settings.io_dir), settings.io_dir_server or str(settings.io_dir))


def check(lab: Lab) -> dict[str, Server]:
    """Ask every database of the lab what it is. Raises LabError at the first one that cannot be used."""
    return {name: answered(name, partial(SYSTEMS[name].client.check, lab.endpoints)) for name in lab.systems}
