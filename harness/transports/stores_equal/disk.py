"""What every store here does alike: it lies in a folder, and what it made is on the disk when a create returns."""

import os
from contextlib import contextmanager


@contextmanager
def folder_of_store(folder):
    """Yield the folder: every operation opens the store itself, inside the clock."""
    yield folder


def flush(folder):
    """Force every file below the folder to disk, and the folders' own entries."""
    for directory, _, names in os.walk(folder):
        for name in (".", *names):
            descriptor = os.open(os.path.join(directory, name), os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
