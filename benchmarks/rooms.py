"""How the code is divided: `python -m benchmarks.rooms [PACKAGE]` prints what docs/architecture.md counts."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path


def arrows(package: Path, trees: dict[Path, ast.Module]) -> dict[str, set[str]]:
    """Return by room (a folder or a file of the package) the others that it imports from, anywhere in its code."""
    rooms = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    found: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees.items():
        room = path.relative_to(package).parts[0].removesuffix(".py")
        for name in _imported(tree):
            whole, _, rest = name.partition(".")
            other = rest.partition(".")[0]
            if whole == package.name and other in rooms - {room, "__init__"}:
                found[room].add(other)
    return found


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def functions(trees: dict[Path, ast.Module]) -> dict[tuple[str, str], list[Path]]:
    """Return where each function of these modules stands, by its name and its text without what it says of itself."""
    found: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                node.body = node.body[1:] if ast.get_docstring(node) else node.body
                found[node.name, ast.unparse(node)].append(path)
    return found


def main(package: Path) -> None:
    """Print the counts, and the arrows."""
    files = {path: path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in files.items()}
    found = arrows(package, trees)
    of_transports = functions({path: tree for path, tree in trees.items() if "transports" in path.parts})
    twice = sorted({name for (name, _), where in of_transports.items() if len(where) > 1})
    print(f"modules on the landing: {sum(path.parent == package and path.stem != '__init__' for path in files)}")
    print(f"rooms: {len(found.keys() | set().union(*found.values()))}")
    print(f"arrows between them: {sum(map(len, found.values()))}")
    print(f"dict[str, Any]: {sum(text.count('dict[str, Any]') for text in files.values())}")
    print(f"functions of transports that stand several times to the letter: {len(twice)} ({', '.join(twice)})")
    connects = [where for (name, _), where in of_transports.items() if name == "connect"]
    print(f"definitions of connect: {sum(map(len, connects))}, {len(connects)} of them different")
    for room, others in sorted(found.items()):
        print(f"  {room} -> {', '.join(sorted(others))}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "harness"))
