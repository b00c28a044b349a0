"""Compare the pins of pyproject.toml with the newest versions of the package index, and with the list of older ones.

    PYTHON environments/newest.py FOLDER     FOLDER is an environment with uv

Fails if a pin is older than the newest version and harness/results/held_back.toml does not list it, or if that lists a
pin that is not. Standard library only.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT, HELD_BACK = ROOT / "pyproject.toml", ROOT / "harness/results/held_back.toml"


def pins(text: str) -> set[tuple[str, str]]:
    """Return the pins in a text of pyproject.toml as names and versions, without the packages of this repository."""
    of_sources = tomllib.loads(text)["tool"]["uv"]["sources"]
    found = re.findall(r'"([\w.-]+)(?:\[[\w,.-]+\])?==([\w.]+)', text)
    return {(name, version) for name, version in found if name not in of_sources}


def newest(folder: Path, names: set[str]) -> dict[str, str]:
    """Return the newest version of each package, according to the index."""
    words = ["pip", "compile", "--quiet", "--no-deps", "--no-annotate", "--no-header", "--python-version", "3.11", "-"]
    command = (sys.executable, str(ROOT / "environments/uv.py"), str(folder), *words)
    done = subprocess.run(command, input="\n".join(sorted(names)), stdout=subprocess.PIPE, text=True, check=True)
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", done.stdout, re.MULTILINE))


def main(folder: Path) -> str | int:
    """Return a line for every difference, or 0."""
    pinned = pins(PROJECT.read_text(encoding="utf-8"))
    there = newest(folder, {name for name, _ in pinned})
    older = {f"{name} {version}, and {there[name]} is out" for name, version in pinned if there[name] != version}
    listed = tomllib.loads(HELD_BACK.read_text(encoding="utf-8"))
    said = {f"{name.rpartition('/')[2]} {one['locked']}, and {one['newest']} is out" for name, one in listed.items()}
    place = HELD_BACK.relative_to(ROOT)
    lines = [f"{line}: raise the pin in pyproject.toml, or list it in {place}" for line in sorted(older - said)]
    lines += [f"{line}: {place} says so, and the index or the pins do not" for line in sorted(said - older)]
    return "\n".join(lines) or 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])) if len(sys.argv) == 2 else __doc__)
