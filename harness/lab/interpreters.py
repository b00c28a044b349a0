"""Modules whose pinned versions conflict with the lab's: each has its own environment and interpreter.

Daft 0.7.26 requires pyarrow below 26, Ray below 2.60 and clickhouse-connect below 1.1. Transports that need Daft run in
a worker of its environment, which has only the lab's package `harness`. The parent's environment does not change.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from harness import settings
from harness.model import Transport

OWN = ("daft",)  # modules with a separate environment of the same name
WORKER = (sys.executable, "-m", "harness.worker")
# Adding the package's parent folder would also add its neighbors: a checkout's tests, or all of the lab's packages.
_START = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("harness", {init!r}, submodule_search_locations=[{folder!r}])
sys.modules["harness"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["harness"])
from harness.worker.jobs import main
main(sys.argv[1:])
"""


@dataclass(frozen=True)
class Interpreter:
    """The environment of a module, whether it exists or not: its name and its folder."""

    name: str
    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "bin" / "python"

    @property
    def exists(self) -> bool:
        """Whether it has been created."""
        return self.python.exists()

    @property
    def remedy(self) -> str:
        """The command that creates it, if the lab is a checkout."""
        if settings.CHECKOUT and self.folder.parent == settings.ROOT:
            return f"make engine ENGINE={self.name}"
        return f"LAB_{self.name.upper()}_DIR: expected an environment made of requirements-{self.name}.lock"

    def has(self, module: str) -> bool:
        """Return whether a module can be imported there, without importing it."""
        found = module in sys.stdlib_module_names or PathFinder.find_spec(module, self._packages())
        return self.exists and bool(found)

    def versions(self) -> dict[str, str]:
        """Return the versions of its Python and of the distributions installed there, by name; `none` if missing."""
        if not self.exists:
            return {}
        lines = (self.folder / "pyvenv.cfg").read_text().splitlines()
        about = {name.strip(): text.strip() for name, _, text in (line.partition("=") for line in lines)}
        found = {each.metadata["Name"].lower(): each.version for each in self._distributions()}
        return {"python": about.get("version") or about.get("version_info", ""), **dict(sorted(found.items()))}

    def distributions_of(self, modules: Iterable[str]) -> list[str]:
        """Return which distributions installed there have these top-level modules."""
        wanted = set(modules)
        found = {
            each.metadata["Name"].lower()
            for each in self._distributions()
            if wanted & {file.parts[0].partition(".")[0] for file in each.files or ()}
        }
        return sorted(found)

    def _packages(self) -> list[str]:
        return [str(path) for path in sorted(self.folder.glob("lib/python3*/site-packages"))]

    def _distributions(self) -> Iterable[metadata.Distribution]:
        return metadata.distributions(path=self._packages())


def of(modules: Iterable[str]) -> Interpreter | None:
    """Return the environment in which these modules are imported, if it is not the lab's."""
    needed = {module.partition(".")[0] for module in modules}
    folders = {"daft": settings.load().daft_dir} if needed & {*OWN} else {}
    return next((Interpreter(name, folder) for name, folder in folders.items() if name in needed), None)


def command_of(entry: Transport) -> tuple[str, ...]:
    """Return the command of a transport's worker."""
    if (interpreter := of(entry.requires)) is None:
        return WORKER
    init = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "__init__.py")
    start = _START.format(init=init, folder=os.path.dirname(init))
    return (str(interpreter.python), "-c", start)
