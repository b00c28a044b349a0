"""DuckDB as a converter between frames and files of binary COPY, which psycopg moves: https://duckdb.org/docs/stable/"""

import os
import tempfile
from contextlib import contextmanager

from harness.registry import phase, transport
from harness.transports.postgres.sql import literal


@contextmanager
def connect(uri):
    """Yield a DuckDB in memory with the extension that knows the format, and a psycopg connection in autocommit mode.

    The extension comes from its wheel: nothing is downloaded.
    """
    import duckdb
    import duckdb_extensions
    import psycopg

    with duckdb.connect() as converter, psycopg.connect(uri, autocommit=True) as connection:
        duckdb_extensions.import_extension("postgres_scanner", con=converter)
        converter.execute("LOAD postgres_scanner")
        yield converter, connection


def _columns(connection, table):
    """Ask the server for the table's columns with their types, whose names DuckDB knows as well."""
    from psycopg import sql

    found = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(sql.Identifier(table)))
    return {column.name: column.type_display for column in found.description}


def _write(both, frame, table):
    """Cast the frame to the table's types, write it as a file of binary COPY, and send that file."""
    from psycopg import sql

    converter, connection = both
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.bin")
        with phase("encode"):
            types = _columns(connection, table)
            # By their places: for DuckDB names that only capital letters tell apart are one.
            casts = ", ".join(f"c{place}::{types[name]}" for place, name in enumerate(frame.columns))
            places = ", ".join(f"c{place}" for place in range(len(frame.columns)))
            converter.register("given", frame)
            rows = f"SELECT {casts} FROM given AS given({places})"
            converter.execute(f"COPY ({rows}) TO {literal(path)} (FORMAT postgres_binary)")
        names = sql.SQL(", ").join(map(sql.Identifier, frame.columns))
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(table), names)
        with phase("send"), open(path, "rb") as file, connection.cursor().copy(statement) as copy:
            while block := file.read(1 << 20):
                copy.write(block)


@transport(
    "write",
    frame="polars",
    path="COPY FROM STDIN (FORMAT binary)",
    payload="binary rows",
    requires=[
        "polars",
        "pyarrow",
        "duckdb",
        "duckdb_extensions",
        "duckdb_extension_postgres_scanner",
        "psycopg",
    ],
    lossy={"changed": "fraction_into_int32", "refused": "enum jsonb uint64"},
)
def write_polars_postgres_binary(both, frame, table):
    """Have DuckDB write the frame as a file of binary COPY (FORMAT postgres_binary), and send the file with psycopg.

    The file goes through the folder for temporary files, in full. DuckDB casts every column to the table's type first,
    which the server is asked for.
    """
    _write(both, frame, table)


@transport(
    "write",
    frame="pandas",
    path="COPY FROM STDIN (FORMAT binary)",
    payload="binary rows",
    requires=["pandas", "duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner", "psycopg"],
    lossy={"changed": "nan fraction_into_int32 float32_nan", "refused": "enum jsonb uint64"},
)
def write_pandas_postgres_binary(both, frame, table):
    """Have DuckDB write the frame as a file of binary COPY (FORMAT postgres_binary), and send the file with psycopg.

    As from polars. A floating NaN arrives as NULL.
    """
    _write(both, frame, table)


@transport(
    "read",
    frame="polars",
    path="COPY TO STDOUT (FORMAT binary)",
    payload="binary rows",
    requires=[
        "polars",
        "pyarrow",
        "duckdb",
        "duckdb_extensions",
        "duckdb_extension_postgres_scanner",
        "psycopg",
    ],
    lossy={"refused": "enum jsonb"},
)
def read_polars_postgres_binary(both, table):
    """Save a binary COPY of psycopg as a file, read it with DuckDB's read_postgres_binary and hand it on to polars.

    The file goes through the folder for temporary files, in full. The server is asked for the columns' types, which
    the format does not name. A uuid comes as its text, every other type as it is in the table.
    """
    from psycopg import sql

    converter, connection = both
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.bin")
        statement = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT (FORMAT binary)").format(sql.Identifier(table))
        with phase("receive"), open(path, "wb") as file, connection.cursor().copy(statement) as copy:
            while block := copy.read():
                file.write(block)
        with phase("decode"):
            columns = _columns(connection, table)
            sql_types = {f"c{place}": sql_type for place, sql_type in enumerate(columns.values())}
            frame = converter.execute("FROM read_postgres_binary(?, columns = ?)", [path, sql_types]).pl()
            frame.columns = list(columns)
            return frame
