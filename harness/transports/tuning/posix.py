"""The operating system's own calls: https://pubs.opengroup.org/onlinepubs/9799919799/functions/write.html"""

from contextlib import contextmanager

from harness.registry import transport


@contextmanager
def connect(folder, s3):
    """Yield 8 MB of incompressible bytes; folder and S3 server are not used."""
    import os

    yield os.urandom(8 << 20)


@transport("write, fsync", "bytes to a file", operation="job", origin="limit")
def sequential_write(block, path, size):
    """Write this many bytes to a new file in blocks of 8 MB and fsync it: the disk's own limit."""
    import os
    import time

    size = int(size)
    started = time.perf_counter()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        left = size
        while left:
            left -= os.write(file, block[:left])
        os.fsync(file)
    finally:
        os.close(file)
    return {"answer": size, "details": {"bytes_per_s": size / (time.perf_counter() - started)}}
