"""ADBC, Arrow's own database driver, for Postgres: https://arrow.apache.org/adbc/current/driver/postgresql.html"""

from contextlib import contextmanager


@contextmanager
def connect(uri):
    """Yield one connection; as in any DBAPI, a statement opens a transaction, which the caller must end."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(uri) as connection:
        yield connection


def schema_of(connection, table):
    """Ask the server for the Arrow types of the table's columns, a uuid as 16 bytes."""
    import pyarrow as pa

    fields = connection.adbc_get_table_schema(table)
    return pa.schema([(field.name, pa.binary(16) if is_uuid(field) else field.type) for field in fields])


def is_uuid(field):
    """Return whether a column, as the driver describes it, is a uuid in the table."""
    return (field.metadata or {}).get(b"POSTGRESQL:type") == b"uuid" or str(field.type) == "extension<arrow.uuid>"
