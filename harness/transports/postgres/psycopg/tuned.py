"""The lab's tuned transports into and out of Postgres: arrow-wire, a library over psycopg that works without the lab.

`help(arrow_wire.postgres.write)` says when rows go in two-phase commit, which locks it takes, and which values it
refuses.
"""

from harness.registry import transport
from harness.transports.parts import batches, write_part


def connect(uri):
    """Return a context manager of open connections: one per core this process may use, at least two, at most eight."""
    from arrow_wire import postgres

    return postgres.connect(uri)


@transport("COPY in slices", "binary rows", requires=["pyarrow.compute", "numpy", "psycopg", "pyarrow"])
def write_polars_tuned(connections, frame, table):
    """Send the rows as binary COPY, encoded by compiled code (`arrow_wire`), over one connection or one per core.

    All rows or none. For an empty table, the key's index is built at the end; otherwise rows are inserted in key order.
    """
    from arrow_wire import postgres

    postgres.write(connections, (table,), frame)  # a tuple allows any table name


@transport("COPY in slices", "binary rows", requires=["pyarrow.compute", "numpy", "psycopg", "pyarrow"])
def write_pandas_tuned(connections, frame, table):
    """Send the rows like `write_polars_tuned`; NaN in a float column stays NaN."""
    from arrow_wire import postgres

    postgres.write(connections, (table,), frame)  # a tuple allows any table name


@transport("COPY in slices", "binary rows", requires=["pyarrow.compute", "numpy", "psycopg"])
def load_tuned(connections, source, table):
    """Send the record batches of a Parquet file as binary COPY, in pieces, over one connection or several.

    Works like `write_polars_tuned`. A piece of at most 262,144 rows or 256 MB is encoded at a time.
    """
    import pyarrow as pa
    from arrow_wire import postgres
    from pyarrow import parquet

    reader = pa.RecordBatchReader.from_batches(parquet.read_schema(source), batches(source))
    postgres.write(connections, (table,), reader)


@transport("SELECT in slices", "binary rows", requires=["numpy", "psycopg", "pyarrow"], settings={"jit": "off"})
def read_polars_tuned(connections, table):
    """Read a slice of the table on every core and decode arriving rows directly into the frame's memory.

    All slices read one snapshot, so the result equals that of one query. Under TLS the rows arrive through COPY (FORMAT
    binary).
    """
    from arrow_wire import postgres

    return postgres.read(connections, (table,), as_="polars")


@transport("SELECT in slices", "binary rows", requires=["numpy", "psycopg", "pyarrow"], settings={"jit": "off"})
def read_pandas_tuned(connections, table):
    """Read a slice of the table on every core and decode arriving rows directly into Arrow's memory.

    Works like `read_polars_tuned`. A date becomes datetime64[us], which ends in the year 294247; a later date is
    refused.
    """
    from arrow_wire import postgres

    return postgres.read(connections, (table,), as_="pandas")


@transport("SELECT in slices", "binary rows", requires=["numpy", "psycopg"], settings={"jit": "off"})
def unload_tuned(connections, table, destination):
    """Read a slice of the table on every core and write arriving rows to one Parquet file.

    Works like `read_polars_tuned`, but holds no more than a few batches of 65,536 rows at a time.
    """
    from arrow_wire import postgres

    write_part(destination, "rows", postgres.stream(connections, (table,)))
