"""clickhouse-connect with insert contexts that know the tables before: https://clickhouse.com/docs/integrations/python"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.clickhouse.server import INSERT_SETTINGS, sessionless
from harness.transports.clickhouse.sql import identifier

# What DESCRIBE says of one table, of all of them in one question.
_TABLES = """
SELECT table, groupArray((position, name, type)) FROM system.columns
WHERE database = currentDatabase() AND default_kind NOT IN ('ALIAS', 'MATERIALIZED') GROUP BY table
"""


@contextmanager
def connect(uri):
    """Yield a client, and for every table of the database an insert context, as a program keeps that inserts often.

    A context holds the types of the table's columns; without one every insert asks for them (DESCRIBE) first.
    """
    with sessionless(uri) as client:
        contexts = {}
        for table, columns in client.query(_TABLES).result_rows:
            _, names, types = zip(*sorted(columns), strict=True)
            contexts[table] = client.create_insert_context(
                identifier(table), names, column_type_names=types, settings=INSERT_SETTINGS
            )
        yield client, contexts


@transport(
    "write",
    frame="pandas",
    path="insert_df(context=), lz4",
    payload="native columns",
    requires=["clickhouse_connect", "lz4.frame", "pandas"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "nan fraction_into_int32 unknown_label float32_nan",
        "refused": "column_default int32_into_text text_into_date int32_into_date timestamp_into_int64 name_quoted",
    },
)
def write_pandas_df_context(connection, frame, table):
    """Send the frame with insert_df and a context that was made before: no DESCRIBE goes ahead of the rows.

    All else as write_pandas_df, which it shows the price of that round trip beside.
    """
    client, contexts = connection
    client.insert_df(df=frame, context=contexts[table])


@transport(
    "write",
    frame="polars",
    path="insert(context=), lz4",
    payload="native columns",
    requires=["clickhouse_connect", "lz4.frame", "polars"],
    settings=INSERT_SETTINGS,
    lossy={
        "changed": "fraction_into_int32 unknown_label timestamps_elsewhere",
        "refused": "column_default int32_into_text text_into_date date_into_timestamp timestamp_into_int64 name_quoted",
    },
)
def write_polars_columns_context(connection, frame, table):
    """Send every column as a list of Python objects with a context that was made before: no DESCRIBE goes ahead.

    All else as write_polars_columns, which it shows the price of that round trip beside.
    """
    client, contexts = connection
    context = contexts[table]
    context.column_oriented = True
    client.insert(data=[frame.get_column(name).to_list() for name in context.column_names], context=context)
