"""Whether a transport's code is still that of its figures: digests of its script from `lab show`.

`lab docs --reference` writes them next to a reference run. Comments and docstrings do not count. A transport that uses
arrow-wire has its sources in the digest, too.
"""

import ast
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from harness import registry, show
from harness.model import Transport
from harness.settings import ROOT

FILE = "sources.json"
_WIRE, _WIRE_SOURCES = "arrow_wire", ("src/**/*.py", "zig/**/*.zig")


def write(place: Path, transports: Iterable[str]) -> None:
    """Write the digests of some transports into the folder of their run."""
    found = {name: digest(registry.one(name)) for name in sorted(transports)}
    (place / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def changed(transports: Iterable[str], place: Path) -> list[str]:
    """Return the transports whose code differs from that of the run in a folder, or that the run does not mention."""
    known = json.loads((place / FILE).read_text("utf-8")) if (place / FILE).is_file() else {}
    return [name for name in transports if known.get(name) != digest(registry.one(name))]


def digest(entry: Transport) -> str:
    """Return the digest of a transport's code, and of arrow-wire if it uses that."""
    script = show.body(entry)  # the transport and all that it calls, without the main program
    made = hashlib.blake2b(ast.dump(_without_docstrings(ast.parse(script))).encode(), digest_size=8)
    if _WIRE in script:
        for path in sorted(path for glob in _WIRE_SOURCES for path in (ROOT / "arrow-wire").glob(glob)):
            made.update(path.read_bytes())
    return made.hexdigest()


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
    return tree


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
