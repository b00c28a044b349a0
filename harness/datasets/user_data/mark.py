"""The mark by which this machine recognizes a user's own data when a run is resumed.

With a plain hash of the rows, anyone with the results could confirm a guess of a small frame. This mark has a key that
never leaves the machine: without it the mark reveals nothing, and another machine gives the same data another mark.
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
    """Return the replacement in results for the hash of a user's rows: their BLAKE2b-256 under a key."""
    return hashlib.blake2b(content_hash.encode(), key=key, digest_size=32).hexdigest()


def key_in(folder: Path) -> bytes:
    """Return this machine's key, which is stored in a folder and created at its first use. Raises LabError."""
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
