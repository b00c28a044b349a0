"""Install locked packages with uv, which takes a third of pip's time, under the settings that a person made for pip.

    PYTHON environments/uv.py create FOLDER     make a fresh environment with the uv of requirements-dev.lock in it
    PYTHON environments/uv.py FOLDER WORDS...   run that uv

uv reads no configuration of pip, and pip none of uv. What is set for uv itself wins. Standard library only.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

LOCK = Path(__file__).resolve().parent.parent / "requirements-dev.lock"
# pip's name of a setting, uv's name, and the separator of several values.
NAMES = {
    "index-url": ("UV_DEFAULT_INDEX", ""),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", ""),
    "client-cert": ("SSL_CLIENT_CERT", ""),
    "proxy": ("ALL_PROXY", ""),
    "timeout": ("UV_HTTP_TIMEOUT", ""),
    "default-timeout": ("UV_HTTP_TIMEOUT", ""),
}
# pip takes an address as it comes, and of two indexes the one that has the version; its newer versions trust whom the
# system trusts.
ALWAYS = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_SYSTEM_CERTS": "true", "UV_NO_PROGRESS": "true"}
# What builds packages without a wheel: pinned, and by --require-hashes held to the hashes.
SOURCES = LOCK.with_name("requirements-sources.lock")
ADVICE = (
    "Is the package index in reach? What is set for pip holds here, too: PIP_INDEX_URL, PIP_CERT, PIP_PROXY, pip.conf "
    "(see: python3 -m pip config list)."
)


def listed_by_pip(listed: str) -> dict[str, str]:
    """Return the settings in what `pip config list` prints that hold for `pip install`."""
    found: dict[str, str] = {}
    for section in ("global", "install", ":env:"):  # of two the later one wins
        for name, value in re.findall(rf"^{section}\.(\S+?)=(.*)$", listed, re.MULTILINE):
            found[name] = ast.literal_eval(value)
    return found


def for_uv(of_pip: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables for uv that say what is set for pip; what the environment says to uv is left alone."""
    found = {name: value for name, value in of_pip.items() if name in NAMES}
    bundle = environment.get("REQUESTS_CA_BUNDLE") or environment.get("CURL_CA_BUNDLE")
    if bundle and "cert" not in found:
        found["cert"] = bundle
    meant = dict(ALWAYS)
    for name, value in found.items():
        variable, between = NAMES[name]
        values = value.split() if between else [value.strip()]
        if name == "find-links":  # pip goes on where such a folder is not there
            values = [each for each in values if "://" in each or Path(each).exists()]
        if values:
            meant[variable] = between.join(values)
    return {name: value for name, value in meant.items() if not environment.get(name)}


def create(folder: Path) -> None:
    """Make a fresh environment with uv in it. Raises SystemExit: uv cannot be had."""
    venv.create(folder, clear=True, with_pip=True, symlinks=os.name != "nt")
    locked = re.search(r"^uv==.*(?:\n +.*)*", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    if not locked:
        raise SystemExit(f"expected uv in {LOCK.name}, found none; run make lock")
    wanted = folder / "uv.lock"
    wanted.write_text(locked[0].rstrip(" \\") + "\n", encoding="utf-8")
    command = [_program(folder, "python"), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    command += ["--retries", "2", "--no-deps", "--require-hashes", "--requirement", str(wanted)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    wanted.unlink()
    if done.returncode:
        why = re.findall(r"connection broken by '(.*)': /", done.stderr) or re.findall(
            r"^ERROR: (.*)", done.stderr, re.M
        )
        raise SystemExit(
            f"uv, which installs the packages, could not be fetched: {(why or [done.stderr])[-1]}\n{ADVICE}"
        )


def run(folder: Path, words: list[str]) -> int:
    """Run the uv of an environment and return its status."""
    asked = [_program(folder, "python"), "-m", "pip", "config", "list"]
    listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    of_pip = listed_by_pip(listed)
    environment = os.environ | for_uv(of_pip, os.environ) | {"UV_BUILD_CONSTRAINT": str(SOURCES)}
    if of_pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):  # uv has no variable for it
        words = [*words[:2], "--no-index", *words[2:]]
    done = subprocess.run(
        [_program(folder, "uv"), *words], env=environment, stderr=subprocess.PIPE, text=True, check=False
    )
    sys.stderr.write(done.stderr)
    if re.search("Failed to (fetch|download)|error sending request", done.stderr):
        sys.stderr.write(f"{ADVICE}\n")
    return done.returncode


def _program(folder: Path, name: str) -> str:
    return str(folder / "bin" / name)


if __name__ == "__main__":
    if sys.argv[1:2] == ["create"] and len(sys.argv) == 3:
        create(Path(sys.argv[2]))
    elif len(sys.argv) > 2:
        sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
    else:
        sys.exit(__doc__)
