"""Files that are built once, with a manifest that says what they are and whether they are still the same."""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from harness.model import Facts, LabError

NAME = "manifest.json"


@contextmanager
def building(what: str, folder: Path) -> Iterator[None]:
    """Raise LabError instead of OSError: the disk is full, or the folder is not writable."""
    try:
        yield
    except OSError as error:
        raise LabError(f"cannot build {what} in {folder}: {error.strerror or error}") from None


@contextmanager
def complete(path: Path) -> Iterator[Path]:
    """Yield where to write a file that gets its name only when it is complete; unfinished ones are removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for unfinished in path.parent.glob(f"{glob.escape(path.name)}.partial-*"):
        unfinished.unlink()
    partial = path.with_name(f"{path.name}.partial-{os.getpid()}")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read(path: Path, of: Facts) -> Facts:
    """Return the facts of a manifest; empty if it is missing, damaged or not `of` these files. Raises LabError."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}; set LAB_DATASETS_DIR to a readable folder") from None
    whole = isinstance(facts, dict) and facts.pop("digest", "") == _digest(facts)
    return facts if whole and facts["of"] == of else {}


def record(path: Path, of: Facts, files: Iterable[Path], **facts: Any) -> Facts:
    """Write the manifest of finished files and return its facts."""
    known = {"of": of, **facts, "files": {file.name: _recorded(file) for file in files}}
    with complete(path) as partial:
        partial.write_text(json.dumps(known | {"digest": _digest(known)}, indent=1) + "\n", encoding="utf-8")
    return known


def same(file: Path, known: Facts) -> bool:
    """Return whether a file is as recorded: by its size and time, or, if only its time differs, by its hash."""
    recorded = known.get("files", {}).get(file.name)
    try:
        found = file.stat()
        if recorded is None or found.st_size != recorded["bytes"]:
            return False
        if found.st_mtime_ns != recorded["mtime_ns"]:
            if file_hash(file) != recorded["hash"]:
                return False
            with suppress(OSError):  # a read-only folder: then it is hashed again the next time
                os.utime(file, ns=(recorded["mtime_ns"], recorded["mtime_ns"]))
    except OSError:
        return False
    return True


def ensure(
    folder: Path,
    of: Facts,
    groups: Sequence[Sequence[Path]],
    make: Callable[[int], None],
    say: Callable[[str], None],
    facts: Callable[[], Facts] = dict,
) -> Facts:
    """Return the facts of a folder's manifest; groups of files that are missing or changed are made again.

    `facts` are further ones, for a new manifest. Raises LabError if the folder is not writable.
    """
    path = folder / NAME
    known = read(path, of)
    with building(of["name"], folder):
        for unfinished in folder.rglob("*.partial-*"):
            unfinished.unlink()
        if missing := [place for place, files in enumerate(groups) if not all(same(file, known) for file in files)]:
            say(f"building {len(missing)} of {len(groups)} files of {of['name']} in {folder.name}/")
            path.unlink(missing_ok=True)  # until all files exist again
            for place in missing:
                make(place)
            known = record(path, of, chain.from_iterable(groups), **facts())
    return known


def file_hash(path: Path) -> str:
    """Return the BLAKE2b-256 of a file's bytes, at about 1 GB/s."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def _recorded(file: Path) -> Facts:
    stat = file.stat()
    return {"bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns, "hash": file_hash(file)}


def _digest(facts: Facts) -> str:
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()
