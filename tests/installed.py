"""The lab as somebody has it who installed its wheel without extras: for tests that run it so."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.lab.packages import PROJECT
from harness.settings import ROOT

# Hides modules from a process as if they were not installed; `find_spec` finds none of them either.
_WITHOUT = """
import sys
from importlib.machinery import PathFinder

hidden, find = set(sys.argv.pop(1).split(",")), PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in hidden else find(name, path, target)

PathFinder.find_spec = find_spec
"""


def base() -> set[str]:
    """Return the packages that the lab installs without extras, with all that they need."""
    found: set[str] = set()
    asked = [(PROJECT, "")]
    while asked:
        name, extra = asked.pop()
        for one in map(Requirement, metadata.requires(name) or []):
            needed = canonicalize_name(one.name)
            if (one.marker is None or one.marker.evaluate({"extra": extra})) and needed not in found:
                found.add(needed)
                asked += [(needed, extra) for extra in ("", *one.extras)]
    return found


def hidden() -> list[str]:
    """Return the modules here that only extras bring, or what they need."""
    kept = base() | {PROJECT}
    return sorted(
        module
        for module, packages in metadata.packages_distributions().items()
        if not kept & {canonicalize_name(package) for package in packages}
    )


def unpack_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout and unpack it as pip would; returns where."""
    build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    place = folder / "site-packages"
    with ZipFile(wheel) as archive:
        archive.extractall(place)
    return place


def run_in(
    here: Path, site: Path, code: str, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python with the unpacked wheel and without what extras bring, in a folder, with a home of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}
    variables = kept | {
        "HOME": str(here.parent / "home"),
        "LAB_LOCK_DIR": str(here.parent),  # tests run beside one another
        "LAB_PICTURES": "0",
        "PYTHONDONTWRITEBYTECODE": "1",  # pip would have compiled it
        "PYTHONPATH": str(site),
    }
    command = (sys.executable, "-c", _WITHOUT + code, ",".join(hidden()), *arguments)
    return subprocess.run(
        command, cwd=here, env=variables | (env or {}), capture_output=True, text=True, timeout=170, check=False
    )


def files(folder: Path) -> Iterator[str]:
    """Yield the paths of all files below a folder, but what Python compiles."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix()


LAB = "from harness.cli import main; main()"
