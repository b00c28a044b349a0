"""Code that all stores here share: a store is a folder, and a create's data are on disk when it returns."""

import os
from contextlib import contextmanager


@contextmanager
def folder_of_store(folder):
    """Yield the folder; every operation opens the store itself, inside the timed call."""
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
