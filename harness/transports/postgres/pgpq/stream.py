"""A stream of pgpq, an encoder from Arrow to the rows of a binary COPY: https://github.com/adriangb/pgpq"""

from harness.registry import transport
from harness.transports.parts import batches
from harness.transports.postgres.binary_copy import copy_batches


@transport(
    "load",
    path="COPY FROM STDIN (FORMAT binary)",
    payload="binary rows",
    requires=["pyarrow.parquet", "pyarrow.compute", "pgpq", "psycopg"],
)
def load_copy_binary_stream(connection, source, table):
    """Encode the record batches of a Parquet file with pgpq, each when it is its turn, all into one binary COPY.

    pgpq encodes in Rust, psycopg sends; texts become the 16 bytes of a uuid on the way, and nothing else is cast. One
    statement: ended half way, it leaves no row.
    """
    copy_batches(connection, table, batches(source))
