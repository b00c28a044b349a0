"""Daft in a single process: https://docs.daft.ai/en/stable/"""

from contextlib import nullcontext

from harness.registry import transport
from harness.transports.postgres.daft.client import copy_sink, read_by_sqlalchemy, types_of_sqlalchemy
from harness.transports.postgres.sql import identifier
from harness.transports.postgres.to_sql import url_of

connect = nullcontext  # the address: every Daft call receives it and opens its own connections


@transport("INSERT, row by row", "text", requires=["pandas", "psycopg"])
def load_write_sql(connection, source, table):
    """Let Daft write a Parquet file with write_sql: each micropartition through pandas' to_sql.

    The column types are the server's. With the types that pandas infers, a uuid would be text, which Postgres refuses.
    Each micropartition is a transaction. Integers next to nulls pass through a pandas float.
    """
    import daft

    types = types_of_sqlalchemy(connection, table)
    daft.read_parquet(source).write_sql(table, url_of(connection), column_types=types)


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows")
def load_copy_sink(connection, source, table):
    """Let Daft read a Parquet file and pass it to our sink, which COPYs each micropartition.

    pgpq encodes the rows. A micropartition is a row group or a part of one, and it is one transaction.
    """
    import daft

    daft.read_parquet(source).write_sink(copy_sink(connection, table))


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows", requires=["connectorx"])
def unload_read_sql(connection, table, destination):
    """Let Daft read a table by its address with read_sql, which uses connectorx, and write it as Parquet.

    Daft first counts the rows. It writes once connectorx has all of them in memory.
    """
    import daft

    daft.read_sql(f"SELECT * FROM {identifier(table)}", connection).write_parquet(destination)


@transport("SELECT", "text", requires=["psycopg", "pyarrow", "sqlglot"])
def unload_read_sql_sqlalchemy(connection, table, destination):
    """Let Daft read a table with read_sql over a SQLAlchemy connection, and write it as Parquet.

    Daft counts the rows, infers their types from the first ten, and holds all of them as Python objects at once.
    """
    read_by_sqlalchemy(connection, table).write_parquet(destination)
