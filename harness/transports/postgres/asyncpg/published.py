"""asyncpg, the asyncio driver that speaks Postgres' binary protocol: https://magicstack.github.io/asyncpg/current/"""

import io
import uuid

from harness.registry import phase, transport
from harness.transports.postgres.asyncpg.client import uuid_positions
from harness.transports.postgres.sql import identifier


def _with_uuids(rows, positions):
    """Yield every row with the strings at these positions turned into UUID objects."""
    for row in rows:
        values = list(row)
        for position in positions:
            values[position] = uuid.UUID(values[position])
        yield values


@transport(
    "COPY FROM STDIN (FORMAT binary)", "rows", published="asyncpg COPY FROM STDIN (FORMAT binary) from Polars rows"
)
async def write_polars_copy_binary(connection, frame, table):
    """Send the rows as typed values into a binary COPY with copy_records_to_table.

    The driver encodes each value in the server's binary form, so the server parses no text. As in the published code,
    every uuid string first becomes a UUID object (asyncpg 0.32 would also accept the string). The article knows the
    uuid columns by position. Here the transport asks the server.
    """
    positions = await uuid_positions(connection, table, frame.columns)
    records = _with_uuids(frame.iter_rows(), positions)
    await connection.copy_records_to_table(table, records=records, columns=frame.columns)


@transport(
    "COPY FROM STDIN (FORMAT binary)", "rows", published="asyncpg COPY FROM STDIN (FORMAT binary) from Pandas rows"
)
async def write_pandas_copy_binary(connection, frame, table):
    """Send the tuples of itertuples as typed values into a binary COPY with copy_records_to_table.

    The driver encodes each value in the server's binary form, so the server parses no text. As in the published code,
    every uuid string first becomes a UUID object. The article knows the uuid columns by position. Here the transport
    asks the server. pandas marks a missing string with NaN, a float, which the driver refuses in a text column.
    """
    columns = list(frame.columns)
    positions = await uuid_positions(connection, table, columns)
    records = _with_uuids(frame.itertuples(index=False, name=None), positions)
    await connection.copy_records_to_table(table, records=records, columns=columns)


@transport("COPY FROM STDIN", "delimited text", published="asyncpg COPY FROM STDIN from Polars delimited text")
async def write_polars_copy_text(connection, frame, table):
    r"""Send the frame as tab-delimited text into COPY ... FROM STDIN with copy_to_table.

    The client sends only text, and the server parses every value again. The recipe marks nulls with \N, and polars does
    not quote a string that is itself \N, so such a string arrives as NULL.
    """
    with phase("encode"):
        buffer = io.BytesIO()
        frame.write_csv(buffer, include_header=False, separator="\t", null_value=r"\N")
    buffer.seek(0)
    with phase("send"):
        await connection.copy_to_table(
            table, source=buffer, columns=frame.columns, format="csv", header=False, delimiter="\t", null=r"\N"
        )


@transport("COPY FROM STDIN", "delimited text", published="asyncpg COPY FROM STDIN from Pandas delimited text")
async def write_pandas_copy_text(connection, frame, table):
    r"""Send the frame as tab-delimited text into COPY ... FROM STDIN with copy_to_table.

    The client sends only text, and the server parses every value again. The recipe marks missing values with \N. NaN in
    a float column, and a string that is itself \N, arrive as NULL.
    """
    with phase("encode"):
        buffer = io.BytesIO()
        frame.to_csv(buffer, index=False, header=False, sep="\t", na_rep=r"\N")
    buffer.seek(0)
    with phase("send"):
        await connection.copy_to_table(
            table, source=buffer, columns=list(frame.columns), format="csv", header=False, delimiter="\t", null=r"\N"
        )


@transport("row fetch", "rows", published="asyncpg row fetch -> Polars dataframe")
async def read_polars_rows(connection, table):
    """Fetch all records with one query and build the frame from their tuples.

    The server sends binary values. A uuid arrives as a Python object (polars dtype Object), an integer as Int64. The
    records name the columns, so an empty table gives a frame without columns.
    """
    import polars as pl

    with phase("receive"):
        rows = await connection.fetch(f"SELECT * FROM {identifier(table)}")
    columns = list(rows[0].keys()) if rows else []
    with phase("decode"):
        return pl.DataFrame([tuple(row) for row in rows], schema=columns, orient="row")


@transport("row fetch", "rows", published="asyncpg row fetch -> Pandas dataframe")
async def read_pandas_rows(connection, table):
    """Fetch all records with one query and build the frame from their tuples.

    The server sends binary values. A uuid and a date arrive as Python objects (dtype object), an integer as int64. The
    records name the columns, so an empty table gives a frame without columns.
    """
    import pandas as pd

    with phase("receive"):
        rows = await connection.fetch(f"SELECT * FROM {identifier(table)}")
    columns = list(rows[0].keys()) if rows else []
    with phase("decode"):
        return pd.DataFrame([tuple(row) for row in rows], columns=columns)


@transport("prepared row fetch", "rows", published="asyncpg prepared row fetch -> Polars dataframe")
async def read_polars_prepared_rows(connection, table):
    """Prepare the query, fetch all records through the prepared statement and build the frame from their tuples.

    The server sends binary values. A uuid arrives as a Python object (polars dtype Object), an integer as Int64. Every
    call prepares the query, as in the published code. The statement names the columns even if the table is empty.
    """
    import polars as pl

    statement = await connection.prepare(f"SELECT * FROM {identifier(table)}")
    with phase("receive"):
        rows = await statement.fetch()
    columns = [column.name for column in statement.get_attributes()]
    with phase("decode"):
        return pl.DataFrame([tuple(row) for row in rows], schema=columns, orient="row")


@transport("prepared row fetch", "rows", published="asyncpg prepared row fetch -> Pandas dataframe")
async def read_pandas_prepared_rows(connection, table):
    """Prepare the query, fetch all records through the prepared statement and build the frame from their tuples.

    The server sends binary values. A uuid and a date arrive as Python objects (dtype object), an integer as int64.
    Every call prepares the query, as in the published code. The statement names the columns even if the table is empty.
    """
    import pandas as pd

    statement = await connection.prepare(f"SELECT * FROM {identifier(table)}")
    with phase("receive"):
        rows = await statement.fetch()
    columns = [column.name for column in statement.get_attributes()]
    with phase("decode"):
        return pd.DataFrame([tuple(row) for row in rows], columns=columns)


@transport("SELECT 1", "one value", origin="limit")
async def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    return await connection.fetchval("SELECT 1")
