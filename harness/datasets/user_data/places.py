"""The location of a user's data: a file, a folder, a name pattern, or standard input; and its format."""

from __future__ import annotations

import glob
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from harness.model import LabError, first_line, printable

STANDARD_INPUT = "-"
_SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow_stream",
}
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow_stream"}
_MAGIC_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_MARK = 6  # bytes of the longest of them
_START = 1 << 12  # bytes that have more than the blanks before the first character
DELIMITED = ("csv", "tsv")
TEXTS = (*DELIMITED, "ndjson")
_NONE_OF_HIVE = "__HIVE_DEFAULT_PARTITION__"


@contextmanager
def in_one_line() -> Iterator[None]:
    """Raise the error in one line, even if a column name in the message has several."""
    try:
        yield
    except LabError as error:
        raise LabError(printable(str(error))) from None


@dataclass(frozen=True)
class Part:
    """One file, the columns that its folders add to its rows (`year=2024`), and its name in messages."""

    path: Path
    form: str
    compression: str = ""
    hive: tuple[tuple[str, str | None], ...] = ()
    called: str = ""

    @property
    def where(self) -> str:
        """Its name in messages."""
        return self.called or str(self.path)

    def content(self, most: int | None = None) -> bytes:
        """Return its decompressed content, or the first `most` bytes of it. Raises LabError."""
        try:
            if self.compression:
                return _decompressed(self.path, self.compression, most)
            with self.path.open("rb") as file:
                return file.read(most)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or first_line(error)
            raise LabError(f"cannot read {self.where}: {reason}") from None


def _decompressed(path: Path, compression: str, most: int | None) -> bytes:
    """Return the decompressed bytes of a file, `most` or all. Raises OSError or ValueError."""
    import pyarrow as pa  # here: a wrong name is found sooner

    with pa.CompressedInputStream(pa.OSFile(str(path)), compression) as stream:
        return bytes(stream.read(most))


def suffix(path: Path) -> str:
    """Return the end of a file's name that shows its format, such as .csv.gz."""
    return "".join(path.suffixes[-2:] if path.suffix.lower() in COMPRESSED else path.suffixes[-1:])


@contextmanager
def parts(path: Path) -> Iterator[list[Part]]:
    """Yield the data's files: one, those of a folder or a pattern, or standard input's. Raises LabError."""
    if str(path) == STANDARD_INPUT:
        with tempfile.TemporaryDirectory(prefix="lab-") as folder:
            yield [_from_standard_input(Path(folder) / "standard_input")]
    elif path.is_dir() or (not path.exists() and glob.has_magic(str(path))):
        yield _several(path)
    else:
        yield [_one(path)]


def pattern(path: Path, of: Path) -> str:
    """Return the pattern for `glob` that finds the files of a folder or a pattern, if `of` is one; empty for a file.

    Its first folders are no pattern if they exist as they are written.
    """
    if path.is_file() or str(path) == STANDARD_INPUT:
        return ""
    there, rest = _fixed(path)
    return os.path.join(glob.escape(str(there)), rest if rest.parts else Path("**", f"*{suffix(of)}"))


def below(path: Path) -> int:
    """Return how many parts at the end of `pattern` are not the fixed folder."""
    return len(_fixed(path)[1].parts) or 2


def _fixed(path: Path) -> tuple[Path, Path]:
    """Return the folder that exists as it is written, and the rest of a pattern."""
    path = path.absolute()
    there = next(folder for folder in (path, *path.parents) if folder.is_dir())
    return there, path.relative_to(there)


def _several(path: Path) -> list[Part]:
    named = _below(path) if path.is_dir() else map(Path, glob.glob(pattern(path, path), recursive=True))
    fixed, _ = _fixed(path)
    kept = [
        file for file in named if file.is_file() and not _is_hidden(file, fixed) and not _is_linked(file, path, fixed)
    ]
    files = sorted((file for file in kept if _by_suffix(file) or not path.is_dir()), key=str)  # as a program sorts them
    if not files:
        raise LabError(f"{path}: no files of Parquet, CSV, JSON lines or Arrow there ({', '.join(_SUFFIXES)})")
    if len(suffixes := sorted({suffix(file) for file in files})) > 1:
        one = next((each for each in suffixes if _by_suffix(Path(f"a{each}"))), suffixes[-1])
        such = (path / "**" if path.is_dir() else path.parent) / f"*{one}"
        raise LabError(f'{path}: files of several forms ({", ".join(suffixes)}); give one, such as "{such}"')
    found = [_one(file, _hive(file)) for file in files]
    names = [[name for name, _ in part.hive] for part in found]
    if other := next((part for part, of_part in zip(found, names, strict=True) if of_part != names[0]), None):
        raise LabError(
            f"{other.where}: its folder names have other columns than those of {found[0].where}; "
            "give a pattern that takes files of one layout"
        )
    return found


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and of those in it. Raises OSError: one cannot be read, as `rglob` does not say."""

    def refuse(error: OSError) -> None:
        raise error

    for place, _, names in os.walk(folder, onerror=refuse):
        yield from (Path(place, name) for name in names)


def _is_hidden(file: Path, fixed: Path) -> bool:
    inside = file.absolute().relative_to(fixed)
    return any(part.startswith(("_", ".")) and "=" not in part for part in inside.parts)


def _is_linked(file: Path, path: Path, fixed: Path) -> bool:
    """Return whether a link to a folder leads to a file that `**` finds: such a link may lead to files found twice."""
    folders = file.absolute().relative_to(fixed).parents if "**" in path.parts else ()
    return any((fixed / folder).is_symlink() for folder in [*folders][:-1])


def _hive(file: Path) -> tuple[tuple[str, str | None], ...]:
    """Return the columns that a file's folders name, such as `year=2024`: those directly above it."""
    found: list[tuple[str, str | None]] = []
    for folder in reversed(file.absolute().parent.parts):
        name, mark, value = folder.partition("=")
        if not mark or not name:
            break
        found.insert(0, (unquote(name), None if value == _NONE_OF_HIVE else unquote(value)))
    return tuple(found)


def _one(path: Path, hive: tuple[tuple[str, str | None], ...] = ()) -> Part:
    if not path.is_file():
        found = "no such file; name a file of Parquet, CSV, JSON lines or Arrow"
        if path.exists():
            found = "no file but a pipe or a device; send its content to standard input, with --data -"
        raise LabError(f"{path}: {found}")
    start, end = _ends(path)
    if not start:
        raise LabError(f"{path} is empty")
    for magic, of_magic in _MAGIC.items():
        if start.startswith(magic):
            if of_magic != "arrow_stream" and not end.endswith(magic):
                raise LabError(f"{path}: cannot be read as {of_magic}: it is cut off; copy it again, or write it again")
            return Part(path, of_magic, hive=hive)
    compression = next((name for magic, name in _MAGIC_COMPRESSED.items() if start.startswith(magic)), "")
    form = _by_suffix(path)
    if form not in TEXTS:
        known = ", ".join(_SUFFIXES)
        raise LabError(
            f"{path}: neither Parquet, CSV, JSON lines nor Arrow; the lab reads {known}, those of text also with .gz "
            "or .zst"
        )
    return Part(path, form, compression, hive)


def _ends(path: Path) -> tuple[bytes, bytes]:
    """Return the first and the last bytes of a file."""
    try:
        with path.open("rb") as file:
            start = file.read(_MARK)
            file.seek(-len(start), os.SEEK_END)
            return start, file.read()
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}") from None


def _by_suffix(path: Path) -> str:
    return _SUFFIXES.get(
        Path(path.stem).suffix.lower() if path.suffix.lower() in COMPRESSED else path.suffix.lower(), ""
    )


def _from_standard_input(path: Path) -> Part:
    """Return standard input's data as a file, because a Parquet reader seeks in it."""
    raw = standard_input()
    path.write_bytes(raw)
    return of_standard_input(raw, path)


def standard_input(whole: bool = True) -> bytes:
    """Return all bytes of standard input, or the first that are there without taking them. Raises LabError."""
    try:
        stream: Any = getattr(sys.stdin, "buffer", io.BytesIO())  # only a stream with a buffer can be looked at
        raw = bytes(stream.read() if whole else stream.peek())
    except (OSError, ValueError, AttributeError) as error:
        raise LabError(f"--data -: standard input cannot be read: {error}") from None
    if not raw:
        raise LabError("--data -: standard input is empty; send a file, as in: cat orders.csv | lab recommend --data -")
    return raw


def of_standard_input(raw: bytes, path: Path) -> Part:
    """Return the file that has the data of standard input, with the format that these bytes show."""
    form = next((of_magic for magic, of_magic in _MAGIC.items() if raw.startswith(magic)), "")
    compression = next((name for magic, name in _MAGIC_COMPRESSED.items() if raw.startswith(magic)), "")
    part = Part(path, form or "csv", compression, called="standard input")
    text = part.content(_START) if compression and path.is_file() else raw
    return replace(part, form="ndjson") if not form and text.lstrip()[:1] == b"{" else part
