"""A stream of pgpq, an encoder from Arrow to the rows of a binary COPY: https://github.com/adriangb/pgpq"""

from harness.registry import transport
from harness.transports.parts import batches
from harness.transports.postgres.binary_copy import copy_batches


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows")
def load_copy_binary_stream(connection, source, table):
    """Encode the record batches of a Parquet file with pgpq one by one, all into one binary COPY.

    pgpq encodes in Rust, and psycopg sends. uuid strings become 16 bytes and dates become days; the transport casts
    nothing else. The load is one statement: if it is interrupted, no row stays.
    """
    copy_batches(connection, table, batches(source))
