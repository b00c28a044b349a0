"""What makes two runs of different environments: facts that must agree for their rows to stand in one table."""

import hashlib
import json

from harness.results.folder import Facts

# Facts that must agree for two sets of rows to stand in one table.
IDENTITY = ("plan", "data", "lab", "machine", "python", "packages", "code")


def fingerprint(facts: Facts) -> str:
    """Return 12 hexadecimal digits (BLAKE2b) of what IDENTITY names and of the versions of the servers."""
    identity = {name: facts.get(name) for name in IDENTITY} | {"servers": _versions(facts)}
    return hashlib.blake2b(json.dumps(identity, sort_keys=True).encode(), digest_size=6).hexdigest()


def differing(first: Facts, second: Facts) -> list[str]:
    """Name the facts of IDENTITY (and the server versions) that two environments disagree on."""
    names = [name for name in IDENTITY if first.get(name) != second.get(name)]
    return names if _versions(first) == _versions(second) else [*names, "servers"]


def made_on(facts: Facts, machine: Facts) -> bool:
    """Say whether a run was made on this machine, as `describe_machine` tells of it.

    The same processor, cores, memory (to the GiB: a kernel takes some) and architecture under the same name. A
    container of the Compose lab has a new name each time, so there the name says nothing; a kernel is updated.
    """
    ran_on = facts["machine"]
    alike = all(ran_on.get(name) == machine.get(name) for name in ("cpu", "cores", "architecture", "system"))
    memory = [round(one.get("memory_bytes", 0) / 2**30) for one in (ran_on, machine)]
    return alike and memory[0] == memory[1] and (facts["lab"] == "compose" or ran_on.get("host") == machine.get("host"))


def code(facts: Facts, digits: int | None = None) -> str:
    """Say which code made a run: a commit (of so many digits), or the version where the lab is an installed package."""
    found = facts.get("code", {})
    if version := found.get("version"):
        return f"version {version}, an installed package"
    return f"commit {(found.get('commit') or 'unknown')[:digits]}{' with changes' if found.get('modified') else ''}"


def server_in_words(server: Facts) -> str:
    """Say which server it was: its version and, where it was a person's own program, which one."""
    return f"{server['version']} of {program}" if (program := server.get("program")) else str(server["version"])


def _versions(facts: Facts) -> dict[str, str]:
    return {name: server_in_words(server) for name, server in facts.get("servers", {}).items()}
