"""Code that Daft uses for Postgres both in one process and on Ray: a COPY sink, and SQLAlchemy connections."""

from functools import partial

from harness.transports.daft import sink_of
from harness.transports.postgres.binary_copy import copy_batches
from harness.transports.postgres.sql import identifier
from harness.transports.postgres.to_sql import url_of


def copy_sink(uri, table):
    """Return a Daft sink that COPYs each micropartition into a table in a separate transaction."""
    return sink_of(partial(_copied, uri, table))


def _copied(uri, table, batches):
    import psycopg

    with psycopg.connect(uri) as connection:
        return copy_batches(connection, table, batches)


def types_of_sqlalchemy(uri, table):
    """Ask the server for the types of a table's columns, by name; Daft treats uuids as strings."""
    import sqlalchemy as sa

    engine = sa.create_engine(url_of(uri))
    types = {column["name"]: column["type"] for column in sa.inspect(engine).get_columns(table)}
    engine.dispose()
    for of in types.values():
        if isinstance(of, sa.UUID):
            of.as_uuid = False
    return types


def read_by_sqlalchemy(uri, table, of_workers="", **partitions):
    """Return a table as a Daft frame, read over SQLAlchemy connections.

    Daft infers the types from the Python values of the first ten rows. Daft 0.7.26 turns uuids into a type that it
    cannot write, so this function declares them as strings.
    """
    import daft
    import sqlalchemy as sa

    def opened():
        return sa.create_engine(url_of(of_workers or uri)).connect()

    strings = [name for name, of in types_of_sqlalchemy(uri, table).items() if isinstance(of, sa.UUID)]
    hints = dict.fromkeys(strings, daft.DataType.string())
    return daft.read_sql(f"SELECT * FROM {identifier(table)}", opened, schema=hints, **partitions)
