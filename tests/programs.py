"""Substitutes of programs, for tests."""

from pathlib import Path


def executable(path: Path, text: str) -> Path:
    """Write an executable file, with its folder if need be, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path
