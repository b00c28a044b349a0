"""Streams of Arrow through clickhouse-connect: https://clickhouse.com/docs/integrations/python"""

from harness.registry import transport
from harness.transports.clickhouse.clickhouse_connect.client import ARROW_SETTINGS
from harness.transports.clickhouse.server import INSERT_SETTINGS, sessionless, to_the_end
from harness.transports.clickhouse.sql import identifier
from harness.transports.parts import batches, gathered, write_part

connect = sessionless

INSERT_ROWS = 500_000  # rows of one INSERT: half of a server's default block
GROUP_ROWS = 32_768  # rows of a row group: the server sends blocks of about 8,000


@transport("insert_arrow, lz4", "Arrow", requires=["lz4.frame"], settings=INSERT_SETTINGS)
def load_insert_arrow(connection, source, table):
    """Send the record batches of a Parquet file with insert_arrow, about 500,000 rows in each INSERT.

    Those rows and their lz4 Arrow file are in memory at the same time. If the load is interrupted, earlier INSERTs
    stay. Partitions that the current INSERT has already written stay too. Empty the table before you load again.
    """
    import pyarrow as pa

    for arrow in map(pa.Table.from_batches, gathered(batches(source), INSERT_ROWS)):
        connection.insert_arrow(identifier(table), arrow, settings=INSERT_SETTINGS)
        del arrow  # free it before gathering the next rows


@transport("sink_batches, insert_df_arrow, lz4", "Arrow", requires=["lz4.frame", "pyarrow"], settings=INSERT_SETTINGS)
def load_polars_sink(connection, source, table):
    """Let polars scan a Parquet file and pass every 500,000 rows (sink_batches) to insert_df_arrow.

    You can put a polars query before the sink. polars reads some row groups ahead. If the load is interrupted, inserted
    rows stay, as with load_insert_arrow.
    """
    import polars as pl

    def insert(frame):  # return None: polars takes a result as a request to stop
        connection.insert_df_arrow(identifier(table), frame, settings=INSERT_SETTINGS)

    pl.scan_parquet(source, glob=False).sink_batches(insert, chunk_size=INSERT_ROWS)


@transport("HTTP SELECT FORMAT ArrowStream", "Arrow", settings=ARROW_SETTINGS)
def unload_query_arrow_stream(connection, table, destination):
    """Write the table as Parquet, record batch by record batch as query_arrow_stream decodes them.

    A UUID arrives as 16 bytes, in the order of its string form. One query returns the rows that the table had when it
    began.
    """
    import pyarrow as pa

    with connection.query_arrow_stream(f"SELECT * FROM {identifier(table)}", settings=ARROW_SETTINGS) as stream:
        groups = gathered(to_the_end(stream), GROUP_ROWS)
        write_part(destination, "rows", map(pa.concat_batches, groups))
