"""polars over ADBC from nothing but an address: https://docs.pola.rs/api/python/stable/reference/api/polars.read_database_uri.html

polars opens the connection itself, so that connecting is part of every call.
"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.postgres.sql import identifier


@contextmanager
def connect(uri):
    """Yield the address itself, after a first connection has shown that somebody answers there."""
    from adbc_driver_postgresql import dbapi

    dbapi.connect(uri).close()
    yield uri


@transport(
    "read",
    frame="polars",
    path="read_database_uri",
    payload="binary rows",
    requires=["polars", "adbc_driver_postgresql.dbapi"],
)
def read_polars_read_database_uri(uri, table):
    """Read the table with polars.read_database_uri and engine="adbc", which connects, reads and closes.

    The driver wraps the query in COPY ... TO STDOUT (FORMAT binary) and makes Arrow batches of it. A uuid comes as 16
    bytes (Binary), all else as the type it has in the table. Connecting is inside the clock, unlike elsewhere.
    """
    import polars as pl

    return pl.read_database_uri(f"SELECT * FROM {identifier(table)}", uri, engine="adbc")
