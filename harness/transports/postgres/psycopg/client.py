"""psycopg 3, the reference Postgres driver for Python: https://www.psycopg.org/psycopg3/docs/"""

import io

from harness.transports.postgres.tables import psycopg_connection

connect = psycopg_connection


def received(connection, statement):
    """Return the data of a COPY ... TO STDOUT, as a buffer at its start."""
    buffer = io.BytesIO()
    with connection.cursor().copy(statement) as copy:
        for row in copy:
            buffer.write(row)
    buffer.seek(0)
    return buffer
