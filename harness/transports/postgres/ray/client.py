"""Ray Data with psycopg, ADBC and pgpq on its workers: https://docs.ray.io/en/latest/data/api/input_output.html"""

from contextlib import contextmanager
from types import SimpleNamespace

from harness.transports.ray import ray_of

PACKAGES = ["pyarrow", "psycopg", "pgpq", "adbc-driver-postgresql"]


@contextmanager
def connect(uri, workers):
    """Yield the database's addresses, as seen by this process and by workers."""
    with ray_of(workers, PACKAGES):
        yield SimpleNamespace(uri=uri, workers_uri=workers.uri)


def opening(uri):
    """Return a function that opens a connection, which Ray Data calls on its workers."""

    def open_connection():
        import psycopg

        return psycopg.connect(uri)

    return open_connection
