"""polars over ADBC with only an address: https://docs.pola.rs/api/python/stable/reference/api/polars.read_database_uri.html

polars opens the connection itself, so every call includes connecting.
"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.postgres.sql import identifier


@contextmanager
def connect(uri):
    """Yield the address itself, after a first connection has shown that a server answers there."""
    from adbc_driver_postgresql import dbapi

    dbapi.connect(uri).close()
    yield uri


@transport("read_database_uri", "binary rows")
def read_polars_read_database_uri(uri, table):
    """Read the table with polars.read_database_uri and engine="adbc", which connects, reads and closes.

    The driver wraps the query in COPY ... TO STDOUT (FORMAT binary) and builds Arrow batches from it. A uuid arrives as
    16 bytes (Binary), all other values with the table's type. The time includes connecting, unlike that of other
    transports.
    """
    import polars as pl

    return pl.read_database_uri(f"SELECT * FROM {identifier(table)}", uri, engine="adbc")
