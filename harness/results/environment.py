"""The facts that must agree before the rows of two runs may appear in one table."""

import hashlib
import json
import tomllib
from functools import cache
from pathlib import Path

from harness.results.folder import Facts, members

# Facts that must agree before two sets of rows may appear in one table.
IDENTITY = ("plan", "data", "lab", "machine", "python", "packages", "code")


@cache
def held_back() -> dict[str, dict[str, str]]:
    """Return the packages of the lab that are older than the newest: `locked`, the `newest`, and `by` which package."""
    return tomllib.loads(Path(__file__).with_name("held_back.toml").read_text(encoding="utf-8"))


def fingerprint(facts: Facts) -> str:
    """Return 12 hexadecimal digits (BLAKE2b) of the facts in IDENTITY and the server versions."""
    identity = {name: facts.get(name) for name in IDENTITY} | {"servers": _versions(facts)}
    return hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=6).hexdigest()


def differing(first: Facts, second: Facts) -> list[str]:
    """Name the facts of IDENTITY (and the server versions) on which two environments disagree."""
    names = [name for name in IDENTITY if first.get(name) != second.get(name)]
    return names if _versions(first) == _versions(second) else [*names, "servers"]


def made_on(facts: Facts, machine: Facts) -> bool:
    """Return whether a run was made on this machine, according to `describe_machine`.

    It compares processor, cores, memory (to the GiB, because a kernel takes some), architecture and name. A container
    of the Compose lab has a new name each time, so there the name does not count. Kernels are updated, so their version
    does not count.
    """
    ran_on = facts["machine"]
    alike = all(ran_on.get(name) == machine.get(name) for name in ("cpu", "cores", "architecture", "system"))
    memory = [round(one.get("memory_bytes", 0) / 2**30) for one in (ran_on, machine)]
    return alike and memory[0] == memory[1] and (facts["lab"] == "compose" or ran_on.get("host") == machine.get("host"))


def code(facts: Facts) -> str:
    """Describe the code of a run: a commit, or the version of an installed lab."""
    return ", ".join(dict.fromkeys(_code(one.get("code", {})) for one in members(facts)))


def _code(found: Facts) -> str:
    if version := found.get("version"):
        return f"version {version}, an installed package"
    return f"commit {(found.get('commit') or 'unknown')[:12]}{' with changes' if found.get('modified') else ''}"


def server_in_words(server: Facts) -> str:
    """Describe the server: its version and, for a user's own program, which one."""
    return f"{server['version']} of {program}" if (program := server.get("program")) else str(server["version"])


def _versions(facts: Facts) -> dict[str, str]:
    return {name: server_in_words(server) for name, server in facts.get("servers", {}).items()}
