"""Arguments of pandas' and Dask's `to_sql` for Postgres: https://pandas.pydata.org/docs/user_guide/io.html#io-sql-method"""

import csv
import io

from harness.transports.postgres.sql import copy_from_stdin, identifier


def url_of(uri):
    """Return a server's address for SQLAlchemy with the driver psycopg; its default is psycopg2."""
    import sqlalchemy as sa

    return sa.make_url(uri).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def uuid_types(engine, table):
    """Ask the server which columns are uuid and return for each the type that takes strings (one round trip)."""
    import sqlalchemy as sa

    query = "SELECT attname FROM pg_attribute WHERE attrelid = CAST(:table AS regclass) AND atttypid = 'uuid'::regtype"
    with engine.connect() as server:
        names = server.execute(sa.text(query), {"table": identifier(table)}).scalars()
        return {name: sa.Uuid(as_uuid=False) for name in names}


def insert_by_copy(table, connection, columns, rows):
    """Insert rows like the example in pandas' documentation, which is written for psycopg2."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    statement = copy_from_stdin(table.name, columns, "WITH CSV")
    with connection.connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(buffer.getvalue())
