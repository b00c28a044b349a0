"""pg_parquet, an extension that lets COPY read and write Parquet files: https://github.com/CrunchyData/pg_parquet"""

from harness.transports.postgres.sql import identifier


def uuid_columns(connection, table, columns):
    """Ask the server which of the columns are uuid and return their names (one round trip)."""
    query = "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND atttypid = 'uuid'::regtype"
    found = connection.execute(query, [identifier(table)]).fetchall()
    return [name for (name,) in found if name in columns]
