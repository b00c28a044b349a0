"""Our own best transports into and out of Postgres: arrow-wire (arrow-wire/), a library over psycopg that is used
without the lab.

Where rows go in two-phase commit, what is locked, and which values are refused: `help(arrow_wire.postgres.write)`.
"""

from typing import Any

from harness.registry import transport
from harness.transports.parts import batches, write_part

_WRITE: Any = {"path": "COPY in slices", "payload": "binary rows"}
_READ: Any = {"path": "SELECT in slices", "payload": "binary rows", "settings": {"jit": "off"}}
_REQUIRES = ["arrow_wire.postgres", "numpy", "psycopg", "pyarrow"]


def connect(uri):
    """Return a block with open connections: as many as this process may use cores, at least two, at most eight."""
    from arrow_wire import postgres

    return postgres.connect(uri)


@transport("write", frame="polars", requires=["polars", "pyarrow.compute", *_REQUIRES], **_WRITE)
def write_polars_tuned(connections, frame, table):
    """Send the rows as binary COPY, encoded by compiled code (`arrow_wire`), over one connection or one for each core.

    All rows or none. An empty table gets the index of its key at the end; another one its rows in the key's order.
    """
    from arrow_wire import postgres

    postgres.write(connections, (table,), frame)  # a tuple takes any name


@transport("write", frame="pandas", requires=["pandas", "pyarrow.compute", *_REQUIRES], **_WRITE)
def write_pandas_tuned(connections, frame, table):
    """Send the rows as `write_polars_tuned` does; NaN in a column of floats stays NaN, as pandas has no other null."""
    from arrow_wire import postgres

    postgres.write(connections, (table,), frame)  # a tuple takes any name


@transport("load", requires=["pyarrow.parquet", "pyarrow.compute", *_REQUIRES], **_WRITE)
def load_tuned(connections, source, table):
    """Send the record batches of a Parquet file as binary COPY, piece by piece, over one connection or several.

    As `write_polars_tuned`; a piece of 262,144 rows or 256 MB at most is encoded at a time.
    """
    import pyarrow as pa
    from arrow_wire import postgres
    from pyarrow import parquet

    reader = pa.RecordBatchReader.from_batches(parquet.read_schema(source), batches(source))
    postgres.write(connections, (table,), reader)


@transport("read", frame="polars", requires=["polars", *_REQUIRES], **_READ)
def read_polars_tuned(connections, table):
    """Read a slice of the table on every core and decode the rows, as they arrive, into the frame's own memory.

    One snapshot makes of the slices what one query would give. Under TLS the rows come by COPY (FORMAT binary).
    """
    from arrow_wire import postgres

    return postgres.read(connections, (table,), as_="polars")


@transport("read", frame="pandas", requires=["pandas", *_REQUIRES], lossy={"refused": "far_dates"}, **_READ)
def read_pandas_tuned(connections, table):
    """Read a slice of the table on every core and decode the rows, as they arrive, into Arrow's memory.

    As `read_polars_tuned`. A date becomes datetime64[us], which ends in the year 294247; a later one is refused.
    """
    from arrow_wire import postgres

    return postgres.read(connections, (table,), as_="pandas")


@transport("unload", requires=["pyarrow.parquet", *_REQUIRES], **_READ)
def unload_tuned(connections, table, destination):
    """Read a slice of the table on every core and write the rows, as they arrive, as one Parquet file.

    As `read_polars_tuned`, from which no more than a few batches of 65,536 rows are held at a time.
    """
    from arrow_wire import postgres

    write_part(destination, "rows", postgres.stream(connections, (table,)))
