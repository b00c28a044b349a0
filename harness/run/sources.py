"""Whether a transport's code is still that of its figures: digests of its script from `lab show`.

A run of committed code keeps them in environment.json. Comments and docstrings do not count. A transport that uses
arrow-wire has its sources in the digest, too, but not the tests among them.
"""

import ast
import hashlib
import io
import tokenize
from collections.abc import Iterable
from functools import cache

from harness import registry, show
from harness.model import Facts, Transport
from harness.settings import ROOT

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
