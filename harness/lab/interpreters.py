"""Clients whose pinned versions conflict with the lab's: each is imported in its own environment.

`make engine ENGINE=<name>` makes such an environment from a lock file, requirements-<name>.lock. It has only the client
and its requirements. A worker there imports the lab's package through a link in its working directory. The worker can
import nothing else of the lab, and the parent's environment does not change.

Daft's pins conflict with the lab's, so that only its environment has it. Other environments have another version of a
package: a case whose parameter `environment` names one runs there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from harness import settings
from harness.model import HERE, Transport

_ONLY_THERE = ("daft",)  # modules that the lab's own environment never has
WORKER = (sys.executable, "-m", "harness.worker")
_PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Interpreter:
    """An environment by its name, whether it exists or not."""

    name: str

    @property
    def folder(self) -> Path:
        """Its folder."""
        return settings.load().environments_dir / f".venv-{self.name}"

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
        return f"make an environment of requirements-{self.name}.lock in LAB_ENVIRONMENTS_DIR/.venv-{self.name}"

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


def of(modules: Iterable[str], environment: str = HERE) -> Interpreter | None:
    """Return the environment in which a case imports these modules, if it is not the lab's."""
    if environment != HERE:
        return Interpreter(environment)
    names = set(_ONLY_THERE) & {module.partition(".")[0] for module in modules}
    return next(map(Interpreter, names), None)


def command_of(entry: Transport, environment: str = HERE) -> tuple[str, ...]:
    """Return the command of the worker of a transport, or of its case in another environment."""
    interpreter = of(entry.requires, environment)
    return (str(interpreter.python), *WORKER[1:]) if interpreter else WORKER


def lend(folder: Path) -> None:
    """Make the lab's package importable for an interpreter of another environment that is started in this folder."""
    (folder / _PACKAGE.name).symlink_to(_PACKAGE)
