"""The mark by which this machine knows somebody's own data again when a run goes on.

A plain hash of the rows would let whoever has the results confirm a guess of a small frame. This one has a key that
never leaves the machine: without it the mark says nothing, and on another machine the same data have another.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path

from harness.model import LabError

FILE = "own-data.key"
_BYTES = 32


def mark(content_hash: str, key: bytes) -> str:
    """Return what results have in place of the hash of somebody's rows: its BLAKE2b-256 under a key."""
    return hashlib.blake2b(content_hash.encode(), key=key, digest_size=32).hexdigest()


def key_in(folder: Path) -> bytes:
    """Return the key of this machine, which is kept in a folder and made at its first use. Raises LabError."""
    path = folder / FILE
    try:
        if path.is_file() and len(known := path.read_bytes()) == _BYTES:
            return known
        made = secrets.token_bytes(_BYTES)
        folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(made)
    except OSError as error:
        raise LabError(f"cannot keep {path}: {error.strerror}; set LAB_STATE_DIR to a folder of yours") from None
    return made
