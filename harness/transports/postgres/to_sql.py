"""What pandas' and Dask's `to_sql` are told of Postgres: https://pandas.pydata.org/docs/user_guide/io.html#io-sql-method"""

import csv
import io

from harness.transports.postgres.sql import identifier


def url_of(uri):
    """Return the address of a server as SQLAlchemy has it, which else takes psycopg2."""
    import sqlalchemy as sa

    return sa.make_url(uri).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def uuid_types(engine, table):
    """Ask the server which columns are uuid and return the type that takes text for each (one round trip)."""
    import sqlalchemy as sa

    query = "SELECT attname FROM pg_attribute WHERE attrelid = CAST(:table AS regclass) AND atttypid = 'uuid'::regtype"
    with engine.connect() as server:
        names = server.execute(sa.text(query), {"table": identifier(table)}).scalars()
        return {name: sa.Uuid(as_uuid=False) for name in names}


def insert_by_copy(table, connection, columns, rows):
    """Insert rows as the example of pandas' own documentation does, which is written for psycopg2."""
    from psycopg import sql

    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN WITH CSV").format(sql.Identifier(table.name), names)
    with connection.connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(buffer.getvalue())
