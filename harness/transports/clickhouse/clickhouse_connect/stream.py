"""Streams of Arrow through clickhouse-connect: https://clickhouse.com/docs/integrations/python"""

from harness.registry import transport
from harness.transports.clickhouse.server import INSERT_SETTINGS, sessionless, to_the_end
from harness.transports.clickhouse.sql import identifier
from harness.transports.parts import batches, write_part

connect = sessionless

INSERT_ROWS = 500_000  # of one INSERT: less than a server divides into blocks by itself


def _gathered(pieces):
    """Yield record batches put together as tables of 500,000 rows or a little more."""
    import pyarrow as pa

    held, rows = [], 0
    for batch in pieces:
        held.append(batch)
        rows += batch.num_rows
        if rows >= INSERT_ROWS:
            gathered, held, rows = pa.Table.from_batches(held), [], 0
            yield gathered
            del gathered, batch  # so that these rows are gone before the next are gathered
    if held:
        yield pa.Table.from_batches(held)


@transport(
    "load",
    path="insert_arrow, lz4",
    payload="Arrow",
    requires=["clickhouse_connect", "lz4.frame", "pyarrow.parquet"],
    settings=INSERT_SETTINGS,
)
def load_insert_arrow(connection, source, table):
    """Send the record batches of a Parquet file with insert_arrow, about 500,000 rows in each INSERT."""
    for arrow in _gathered(batches(source)):
        connection.insert_arrow(identifier(table), arrow, settings=INSERT_SETTINGS)
        del arrow


@transport(
    "load",
    path="sink_batches, insert_df_arrow, lz4",
    payload="Arrow",
    requires=["clickhouse_connect", "lz4.frame", "polars", "pyarrow"],
    settings=INSERT_SETTINGS,
)
def load_polars_sink(connection, source, table):
    """Let polars scan a Parquet file and hand every 500,000 rows (sink_batches) to insert_df_arrow."""
    import polars as pl

    def insert(frame):  # what it returns polars takes for the wish to stop, so that has to be nothing
        connection.insert_df_arrow(identifier(table), frame, settings=INSERT_SETTINGS)

    pl.scan_parquet(source, glob=False).sink_batches(insert, chunk_size=INSERT_ROWS)


@transport(
    "unload",
    path="HTTP SELECT FORMAT ArrowStream",
    payload="Arrow",
    requires=["clickhouse_connect", "pyarrow.parquet"],
)
def unload_query_arrow_stream(connection, table, destination):
    """Write the table as Parquet, record batch by record batch as query_arrow_stream decodes them."""
    with connection.query_arrow_stream(f"SELECT * FROM {identifier(table)}") as stream:
        write_part(destination, "rows", to_the_end(stream))
