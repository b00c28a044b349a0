"""psycopg 3, the reference Postgres driver for Python: https://www.psycopg.org/psycopg3/docs/"""

import io

from harness.transports.postgres.tables import psycopg_connection

connect = psycopg_connection


def types_of(connection, table):
    """Ask the server for the names of the table's columns and of their types, e.g. `int4` (one round trip)."""
    from psycopg import sql

    cursor = connection.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(sql.Identifier(table)))
    known = {info.oid: info.name for info in connection.adapters.types}
    return {column.name: known.get(column.type_code, "") for column in cursor.description}


def received(connection, statement):
    """Return the data of a COPY ... TO STDOUT, as a buffer at its start."""
    buffer = io.BytesIO()
    with connection.cursor().copy(statement) as copy:
        for row in copy:
            buffer.write(row)
    buffer.seek(0)
    return buffer
