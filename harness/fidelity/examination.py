"""The prepared state for the pairs of `lab verify`: a lab, the selected transports and kinds of values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import metadata

from harness.datasets.hostile.common_kinds import KINDS
from harness.datasets.hostile.kind import Kind
from harness.fidelity.tables import held
from harness.lab import labs
from harness.lab.labs import Lab, reason_unavailable
from harness.lab.object_stores import Objects, object_store
from harness.machine import scratch
from harness.machine.stopping import on_signals
from harness.model import Fate, LabError, Operation, Server, Transport
from harness.run.execution import COMMAND
from harness.run.lock import only_run, only_run_on_server
from harness.run.suite_run import new_id
from harness.settings import Settings

TIME_LIMIT = 20.0  # seconds for one pair, including the client's import; nearly all take a fraction of a second

_NOTICED_SECONDS = 5.0  # seconds within which a keeper notices that its service is gone


@dataclass(frozen=True)
class Examination:
    """Everything prepared for the pairs: servers, S3 (or the reason without it), and the selected transports.

    `in_batches` says whether pairs are first tried several at a time, see `harness.fidelity.batch`.
    """

    lab: Lab
    servers: dict[str, Server]
    objects: Objects | str
    bucket: str
    chosen: Sequence[Transport]
    run_id: str = ""
    kinds: Sequence[Kind] = tuple(KINDS.values())
    command: tuple[str, ...] = COMMAND
    time_limit: float = TIME_LIMIT
    in_batches: bool = False

    @property
    def conditions(self) -> str:
        """Servers and client versions of the examination, and the name of the run, in one line."""
        servers = ", ".join(f"{name} {server.version}" for name, server in self.servers.items())
        modules = {module for entry in self.chosen for module in entry.modules}
        providers = metadata.packages_distributions()
        packages = {name.lower() for module in modules for name in providers.get(module, ())}
        versions = ", ".join(f"{name} {metadata.version(name)}" for name in sorted(packages))
        extent = f"{len(self.chosen)} transports, {len(self.kinds)} kinds of values"
        return f"lab: {self.lab.name} ({servers}); {extent}; {versions}; {self.run_id}"

    @property
    def secrets(self) -> list[str]:
        """Strings that must not appear in any detail."""
        store = [] if isinstance(self.objects, str) else self.objects.store.secrets
        return [*self.lab.endpoints.values(), *store]

    def died(self, system: str) -> bool:
        """Return whether an unreachable database has died, giving its keeper time to notice."""
        deadline = time.monotonic() + _NOTICED_SECONDS
        while system not in self.lab.dead():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def mend(self, system: str, hangs: bool) -> str:
        """Restart our database if it hangs or has died, and describe what happened. Raises LabError."""
        if hangs:
            self.lab.end(system)
        if system not in self.lab.revive([system]):
            raise LabError(f"the {system} server {'hangs' if hangs else 'is gone'}; see to it and start again")
        return f"the {system} server {'did not answer' if hangs else 'died'} and was restarted"


@contextmanager
def opened(
    settings: Settings, lab_name: str, chosen: Sequence[Transport], kinds: Sequence[Kind], say: Callable[[str], None]
) -> Iterator[Examination]:
    """Start a lab, alone on this machine, for these transports and kinds of values. Raises LabError."""
    run_id = f"{new_id(settings.results_dir)}-verify"
    with ExitStack() as stack:
        stack.enter_context(on_signals())
        stack.enter_context(only_run(settings.lock_folder, run_id))
        scratch.remove_left()
        lab = stack.enter_context(labs.OPENED[lab_name](settings))
        servers = labs.check(lab)
        stack.enter_context(only_run_on_server(lab, run_id))
        on_s3 = [one.id for one in chosen if "s3" in one.needs and not reason_unavailable(one, lab, servers)]
        objects, bucket = stack.enter_context(object_store(settings, on_s3, run_id, say))
        yield Examination(lab, servers, objects, bucket, chosen, run_id, kinds)


def pairs(entry: Transport, kinds: Iterable[Kind] = tuple(KINDS.values())) -> list[Kind]:
    """Return the kinds to try with a transport: a read needs existing rows, a write a frame of them.

    For kinds in another time zone, only types that the transport supports at all are tried.
    """
    no_type = {name for name, fate in entry.lossy.items() if fate != Fate.CHANGED}
    tried = (kind for kind in kinds if kind.type_of not in no_type)
    known = [of_system for kind in tried if (of_system := held(kind, entry.system))]
    if entry.operation is Operation.READ:
        return [of_system.kind for of_system in known if not (of_system.forbidden or of_system.no_read)]
    return [of_system.kind for of_system in known if entry.frame not in of_system.kind.no_frame]
