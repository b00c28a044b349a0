"""DuckDB converts between frames and binary COPY files, which psycopg sends: https://duckdb.org/docs/stable/"""

import os
import tempfile
from contextlib import contextmanager

from harness.registry import phase, transport
from harness.transports.postgres.sql import copy_from_stdin, copy_to_stdout, identifier, literal


@contextmanager
def connect(uri):
    """Yield an in-memory DuckDB with the extension for the format, and a psycopg connection in autocommit mode.

    The extension comes from its wheel, so nothing is downloaded.
    """
    import duckdb
    import duckdb_extensions
    import psycopg

    with duckdb.connect() as converter, psycopg.connect(uri, autocommit=True) as connection:
        duckdb_extensions.import_extension("postgres_scanner", con=converter)
        converter.execute("LOAD postgres_scanner")
        yield converter, connection


def _columns(connection, table):
    """Ask the server for the table's columns and their types, whose names DuckDB also uses."""
    found = connection.execute(f"SELECT * FROM {identifier(table)} LIMIT 0")
    return {column.name: column.type_display for column in found.description}


def _write(both, frame, table):
    """Cast the frame to the table's types, write it as a binary COPY file, and send that file."""
    converter, connection = both
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.bin")
        with phase("encode"):
            types = _columns(connection, table)
            # By position: DuckDB treats names that differ only in case as equal.
            casts = ", ".join(f"c{place}::{types[name]}" for place, name in enumerate(frame.columns))
            places = ", ".join(f"c{place}" for place in range(len(frame.columns)))
            converter.register("given", frame)
            rows = f"SELECT {casts} FROM given AS given({places})"
            converter.execute(f"COPY ({rows}) TO {literal(path)} (FORMAT postgres_binary)")
        statement = copy_from_stdin(table, frame.columns, "(FORMAT binary)")
        with phase("send"), open(path, "rb") as file, connection.cursor().copy(statement) as copy:
            while block := file.read(1 << 20):
                copy.write(block)


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows", requires=["pyarrow", "duckdb_extension_postgres_scanner"])
def write_polars_postgres_binary(both, frame, table):
    """Have DuckDB write the frame as a binary COPY file (FORMAT postgres_binary), and send the file with psycopg.

    The whole file goes through the folder for temporary files. DuckDB first casts every column to the table's type,
    which the transport asks the server for.
    """
    _write(both, frame, table)


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows", requires=["duckdb_extension_postgres_scanner"])
def write_pandas_postgres_binary(both, frame, table):
    """Have DuckDB write the frame as a binary COPY file (FORMAT postgres_binary), and send the file with psycopg.

    Works like write_polars_postgres_binary. NaN in a float column arrives as NULL.
    """
    _write(both, frame, table)


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows", requires=["pyarrow", "duckdb_extension_postgres_scanner"])
def read_polars_postgres_binary(both, table):
    """Save psycopg's binary COPY as a file, read it with DuckDB's read_postgres_binary and pass it to polars.

    The whole file goes through the folder for temporary files. The format does not name the column types, so the
    transport asks the server for them. A uuid arrives as its string, every other value with the table's type.
    """
    converter, connection = both
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.bin")
        statement = copy_to_stdout(table, "(FORMAT binary)")
        with phase("receive"), open(path, "wb") as file, connection.cursor().copy(statement) as copy:
            while block := copy.read():
                file.write(block)
        with phase("decode"):
            columns = _columns(connection, table)
            sql_types = {f"c{place}": sql_type for place, sql_type in enumerate(columns.values())}
            frame = converter.execute("FROM read_postgres_binary(?, columns = ?)", [path, sql_types]).pl()
            frame.columns = list(columns)
            return frame
