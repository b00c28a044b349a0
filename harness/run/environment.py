"""environment.json: a run's machine, versions and settings, so that only comparable runs are compared."""

import ast
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from harness import registry, show
from harness.lab import interpreters
from harness.lab.packages import PROJECT
from harness.machine.inventory import describe_machine, disk
from harness.model import Case, Facts, LabError, Transport
from harness.results.environment import fingerprint
from harness.run.rigs.rig import AnyRig, RunRequest
from harness.settings import CHECKOUT, ROOT

# Whether a transport's code is still that of its figures: digests of its script from `lab show`.
#
# A run of committed code keeps them in environment.json. Comments and docstrings do not count. A transport that uses
# arrow-wire has its sources in the digest, too, but not the tests among them.

_WIRE, _WIRE_SOURCES = "arrow_wire", ("src/**/*.py", "zig/**/*.zig")


def digests(transports: Iterable[Transport]) -> dict[str, str]:
    """Return the digest of each transport's code, by id."""
    return {name: digest(entry) for name, entry in {entry.id: entry for entry in transports}.items()}


def changed(transports: Iterable[str], environment: Facts) -> list[str]:
    """Return the transports whose code differs from that of a run, or of which the run says nothing."""
    known = environment.get("sources", {})
    return [name for name in transports if known.get(name) != digest(registry.one(name))]


def digest(entry: Transport) -> str:
    """Return the digest of a transport's code, and of arrow-wire if it uses that."""
    script = show.body(entry)  # the transport and all that it calls, without the main program
    wire = _wire(_WIRE_SOURCES) if _WIRE in script else ""
    return hashlib.blake2b((_program(script) + wire).encode(), digest_size=8).hexdigest()


@cache
def _wire(globs: tuple[str, ...]) -> str:
    """Return what counts of arrow-wire's sources."""
    paths = sorted(path for glob in globs for path in (ROOT / "arrow-wire").glob(glob))
    return "".join(_counts(path.read_text(encoding="utf-8"), path.suffix) for path in paths if "_test" not in path.stem)


def _counts(source: str, suffix: str) -> str:
    if suffix == ".py":
        return _program(source)
    return "\n".join(line for line in source.splitlines() if not line.lstrip().startswith("//"))


def _program(source: str) -> str:
    """Return Python source without comments, docstrings and empty lines: all versions of Python see the same."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


def require_current_wire() -> None:
    """Raise LabError if arrow-wire was installed from other sources than the checkout's, of which the figures would be.

    The wheel has its Python files and, in `compiled_from.txt`, the digest of what `arrow-wire/compile.py` compiled.
    """
    found, checkout = find_spec(_WIRE), ROOT / "arrow-wire"
    files = sorted((checkout / "src" / _WIRE).glob("*.py"))
    if not files or found is None or found.origin is None:
        return
    installed = Path(found.origin).parent
    zig = hashlib.blake2b(b"".join(map(Path.read_bytes, sorted((checkout / "zig").glob("*.zig")))), digest_size=8)
    try:
        current = all(path.read_bytes() == (installed / path.name).read_bytes() for path in files)
        current = current and (installed / "compiled_from.txt").read_text() == zig.hexdigest()
    except OSError:
        current = False
    if not current:
        raise LabError("arrow-wire was installed from other sources than those of this checkout; make install")


def describe(request: RunRequest, rig: AnyRig, cases: Sequence[Case]) -> Facts:
    """Return the environment of a run of these cases as plain values, without addresses, users or passwords.

    Raises LabError if the installed arrow-wire is not that of the checkout.
    """
    require_current_wire()
    settings = request.settings
    code = _code(settings.commit)
    facts = {
        "plan": asdict(request.plan),
        "lab": rig.lab_name,
        **rig.facts(),
        "machine": _machine(settings.emulated),
        "disk": disk(settings.state_dir),
        "python": platform.python_version(),
        "packages": _packages() | _elsewhere(cases),
        "uses": _distributions(cases),
        "code": code,
        "sources": digests(case.transport for case in cases) if code["modified"] is False else {},
        "measurement": {
            "clock": "time.monotonic_ns in the worker",
            "memory": "kernel high-water mark and 50 ms samples" if sys.platform == "linux" else "psutil, RSS only",
            "garbage_collection": "on; one collection just before the clock starts",
            "next_worker": f"starts {'while' if settings.ahead else 'after'} a result is verified",
            "page_cache": "warm, where no parameter says otherwise",
        },
        "load_average_at_start": [round(value, 2) for value in os.getloadavg()],
    }
    plain = json.loads(json.dumps(facts))  # as it will be read back: lists instead of tuples
    return {"fingerprint": fingerprint(plain), **plain}


@cache
def _packages() -> dict[str, str]:
    return dict(sorted((d.metadata["Name"].lower(), d.version) for d in metadata.distributions()))


_providers = cache(metadata.packages_distributions)  # both read a file of each installed package


def _machine(emulated: str | None) -> dict[str, object]:
    found = describe_machine()
    return found | ({"cpu": f"{found['cpu'] or 'a processor'} (emulated: {emulated})"} if emulated else {})


def _distributions(cases: Iterable[Case]) -> dict[str, list[str]]:
    """Return the distributions of each transport's modules, under `packages`' names."""
    providers = _providers()
    found: dict[str, list[str]] = {}
    for case in {(case.transport.id, case.environment): case for case in cases}.values():
        modules = case.transport.modules
        if own := interpreters.of(modules, case.environment):
            used = [f"{own.name}/{name}" for name in ("python", *own.distributions_of(modules)) if own.exists]
        else:
            used = sorted({name.lower() for module in modules for name in providers.get(module, ())})
        found.setdefault(case.transport.id, []).extend(used)
    return found


def _elsewhere(cases: Iterable[Case]) -> dict[str, str]:
    """Return the versions in separate environments of some cases: `daft/pyarrow`."""
    owns = {own for case in cases if (own := interpreters.of(case.transport.modules, case.environment))}
    return {f"{own.name}/{name}": version for own in owns for name, version in own.versions().items()}


def _code(built_from: str | None) -> dict[str, object]:
    """Return the checkout's commit and whether it is clean, None without git; for an installed package its version.

    An installed package does not ask git, because its environment may be inside another project's checkout.
    """
    if built_from:
        return {"commit": built_from.removesuffix("-dirty"), "modified": built_from.endswith("-dirty")}
    if not CHECKOUT:
        return {"commit": None, "modified": None, "version": metadata.version(PROJECT)}
    try:
        commit = _git("rev-parse", "HEAD")
        return {"commit": commit, "modified": bool(_git("status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "modified": None}


def _git(*arguments: str) -> str:
    return subprocess.run(("git", *arguments), cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
