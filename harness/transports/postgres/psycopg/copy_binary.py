"""psycopg 3 with COPY in Postgres' binary format: https://www.psycopg.org/psycopg3/docs/basic/copy.html#binary-copy

The driver converts between Python values and the server's bytes, so nothing is parsed as text. The server casts nothing
in a binary COPY. Without `set_types` the driver would send an int in as few bytes as it needs.
"""

from numbers import Integral
from uuid import UUID

from harness.registry import transport
from harness.transports.postgres.sql import copy_from_stdin, copy_to_stdout, identifier, identifiers
from harness.transports.postgres.tables import rows_of_pandas

LARGEST_FLOAT4 = 3.4028234663852886e38


def _types(connection, table, columns=()):
    """Ask the server for the names of these columns (or all) and their type numbers (one round trip)."""
    cursor = connection.execute(f"SELECT {identifiers(columns) or '*'} FROM {identifier(table)} LIMIT 0")
    return {column.name: column.type_code for column in cursor.description}


def _refuse_beyond(connection, frame, types):
    """Raise OverflowError for a number too large for its column: the driver (3.3) would silently store another."""
    bits_of = {connection.adapters.types[f"int{size}"].oid: 8 * size for size in (2, 4, 8)}
    for name, oid in types.items():
        values = frame[name]
        if bits := bits_of.get(oid):
            for end in (values.min(), values.max()):
                if isinstance(end, Integral) and not -(2 ** (bits - 1)) <= end < 2 ** (bits - 1):
                    raise OverflowError(f'column "{name}": {end} does not fit an integer of {bits} bits')
        elif oid == connection.adapters.types["float4"].oid and str(values.dtype).lower() == "float64":
            size = values.abs()
            if ((size > LARGEST_FLOAT4) & (size < float("inf"))).any():
                raise OverflowError(f'column "{name}": a value does not fit a float of 32 bits')


def _document(value):
    """Parse a JSON string into its document: the driver would turn the string itself into a JSON string."""
    from psycopg.types.json import Json

    return Json(value, dumps=str) if isinstance(value, str) else value


def _copy_rows(connection, table, types, rows):
    """Send rows of values, with uuids and JSON as strings, into a binary COPY FROM STDIN."""
    of_type = {"uuid": UUID, "json": _document, "jsonb": _document}
    made_by = {connection.adapters.types[name].oid: make for name, make in of_type.items()}
    made = [(place, made_by[oid]) for place, oid in enumerate(types.values()) if oid in made_by]
    with connection.cursor().copy(copy_from_stdin(table, types, "WITH (FORMAT binary)")) as copy:
        copy.set_types(list(types.values()))
        for row in rows:
            values = list(row)
            for place, make in made:
                values[place] = values[place] and make(values[place])
            copy.write_row(values)


def _rows(connection, table, types):
    """Return all rows of a binary COPY TO STDOUT as tuples of Python values."""
    with connection.cursor().copy(copy_to_stdout(table, "WITH (FORMAT binary)")) as copy:
        copy.set_types(list(types.values()))
        return list(copy.rows())


@transport("COPY FROM STDIN (FORMAT binary)", "rows")
def write_polars_copy_binary(connection, frame, table):
    """Send the rows as typed values into a binary COPY with set_types and write_row.

    Every uuid string first becomes a UUID object, because the driver takes no string for a uuid. The transport asks the
    server for the column types.
    """
    types = _types(connection, table, frame.columns)
    _refuse_beyond(connection, frame, types)
    _copy_rows(connection, table, types, frame.iter_rows())


@transport("COPY FROM STDIN (FORMAT binary)", "rows")
def write_pandas_copy_binary(connection, frame, table):
    """Send the rows as typed values into a binary COPY with set_types and write_row.

    Every uuid string first becomes a UUID object, and every datetime64 of a date column a date. Missing values are sent
    as NULL. NaN in a float column stays NaN.
    """
    types = _types(connection, table, list(frame.columns))
    _refuse_beyond(connection, frame, types)
    date = connection.adapters.types["date"].oid
    dates = [name for name, oid in types.items() if oid == date and frame[name].dtype.kind == "M"]
    frame = frame.assign(**{name: frame[name].dt.date for name in dates})
    _copy_rows(connection, table, types, rows_of_pandas(frame))


@transport("COPY TO STDOUT (FORMAT binary)", "rows")
def read_polars_copy_binary(connection, table):
    """Collect the rows of a binary COPY ... TO STDOUT with set_types as tuples and build the frame from them.

    The server sends binary values, and the driver turns them into Python values one by one. A uuid arrives as a Python
    object (polars dtype Object), an integer as Int64. The transport asks the server for the column types.
    """
    import polars as pl

    types = _types(connection, table)
    rows = _rows(connection, table, types)
    return pl.DataFrame(rows, schema=list(types), orient="row", infer_schema_length=None)


@transport("COPY TO STDOUT (FORMAT binary)", "rows")
def read_pandas_copy_binary(connection, table):
    """Collect the rows of a binary COPY ... TO STDOUT with set_types as tuples and build the frame from them.

    The server sends binary values, and the driver turns them into Python values one by one. A uuid and a date arrive as
    Python objects (dtype object), an integer as int64, or as float64 with nulls.
    """
    import pandas as pd

    types = _types(connection, table)
    return pd.DataFrame(_rows(connection, table, types), columns=list(types))
