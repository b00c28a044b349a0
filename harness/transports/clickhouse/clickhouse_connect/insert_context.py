"""clickhouse-connect with insert contexts made in advance: https://clickhouse.com/docs/integrations/python"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.clickhouse.server import INSERT_SETTINGS, sessionless
from harness.transports.clickhouse.sql import identifier

# The result of DESCRIBE for all tables in one query.
_TABLES = """
SELECT table, groupArray((position, name, type)) FROM system.columns
WHERE database = currentDatabase() AND default_kind NOT IN ('ALIAS', 'MATERIALIZED') GROUP BY table
"""


@contextmanager
def connect(uri):
    """Yield a client, and an insert context for every table of the database, as a program that inserts often keeps.

    A context holds the types of the table's columns. Without one, every insert first asks for them (DESCRIBE).
    """
    with sessionless(uri) as client:
        contexts = {}
        for table, columns in client.query(_TABLES).result_rows:
            _, names, types = zip(*sorted(columns), strict=True)
            contexts[table] = client.create_insert_context(
                identifier(table), names, column_type_names=types, settings=INSERT_SETTINGS
            )
        yield client, contexts


@transport("insert_df(context=), lz4", "native columns", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def write_pandas_df_context(connection, frame, table):
    """Send the frame with insert_df and a context made in advance, which saves the DESCRIBE round trip.

    Otherwise like write_pandas_df: the difference in time is the cost of that round trip.
    """
    client, contexts = connection
    client.insert_df(df=frame, context=contexts[table])


@transport("insert(context=), lz4", "native columns", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def write_polars_columns_context(connection, frame, table):
    """Send every column as a list of Python objects with a context made in advance, without DESCRIBE.

    Otherwise like write_polars_columns: the difference in time is the cost of that round trip.
    """
    client, contexts = connection
    context = contexts[table]
    context.column_oriented = True
    client.insert(data=[frame.get_column(name).to_list() for name in context.column_names], context=context)
