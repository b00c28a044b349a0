"""clickhouse-connect with insert contexts that know the tables before: https://clickhouse.com/docs/integrations/python"""

from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit

from harness.registry import transport
from harness.transports.clickhouse.sql import identifier

CLIENT = "clickhouse_connect"
ENDPOINT = "clickhouse_http"

# Since 26.2 ClickHouse collects small inserts for up to 200 ms before it writes them: that wait is not the transport's.
INSERT_SETTINGS = {"async_insert": "0"}


@contextmanager
def connect(uri):
    """Yield a client, and for every table of the database an insert context, as a program keeps that inserts often.

    A context holds the types of the table's columns; without one every insert asks for them (DESCRIBE) first.
    """
    import clickhouse_connect

    parts = urlsplit(uri)
    client = clickhouse_connect.get_client(
        host=parts.hostname,
        port=parts.port,
        secure=parts.scheme == "https",
        username=unquote(parts.username or "default"),
        password=unquote(parts.password or ""),
        database=parse_qs(parts.query).get("database", ["default"])[0],
        compress="lz4",  # what the default (True) means where lz4 is installed, which clickhouse-connect requires
        autogenerate_session_id=False,
    )
    try:
        tables = client.query("SELECT name FROM system.tables WHERE database = currentDatabase()").result_columns
        names = tables[0] if tables else []
        yield client, {name: client.create_insert_context(identifier(name), settings=INSERT_SETTINGS) for name in names}
    finally:
        client.close()


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
def write_pandas_df(connection, frame, table):
    """Send the frame with insert_df and a context that was made before: no DESCRIBE goes ahead of the rows.

    All else as clickhouse_connect.write_pandas_df, which it shows the price of that round trip beside.
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
        "changed": "fraction_into_int32 unknown_label",
        "refused": "column_default int32_into_text text_into_date date_into_timestamp timestamp_into_int64 name_quoted",
    },
)
def write_polars_columns(connection, frame, table):
    """Send every column as a list of Python objects with a context that was made before: no DESCRIBE goes ahead.

    All else as clickhouse_connect.write_polars_columns, which it shows the price of that round trip beside.
    """
    client, contexts = connection
    context = contexts[table]
    context.column_oriented = True
    client.insert(data=[frame.get_column(name).to_list() for name in context.column_names], context=context)
