"""Streams of Arrow through ADBC: https://arrow.apache.org/adbc/current/driver/postgresql.html"""

from harness.registry import transport
from harness.transports.parts import batches, write_part
from harness.transports.postgres.adbc.client import is_uuid
from harness.transports.postgres.binary_copy import as_the_table
from harness.transports.postgres.sql import identifier

BATCH_BYTES = 8 << 20


def _as_the_server_has_it(connection, source, table):
    """Return a Parquet file as an Arrow stream, with 16 bytes for each uuid and days for each date."""
    import pyarrow as pa
    from pyarrow import parquet

    fields = connection.adbc_get_table_schema(table)
    sql_types = {field.name: "uuid" if is_uuid(field) else str(field.type).partition("32")[0] for field in fields}
    empty = as_the_table(parquet.read_schema(source).empty_table(), sql_types)
    made = (as_the_table(pa.Table.from_batches([batch]), sql_types).to_batches() for batch in batches(source))
    return pa.RecordBatchReader.from_batches(empty.schema, (batch for some in made for batch in some))


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows")
def load_ingest(connection, source, table):
    """Append the record batches of a Parquet file with adbc_ingest, which takes one after the other.

    The driver asks for a batch, encodes it in the server's binary form and sends it. It casts nothing, so uuid strings
    first become 16 bytes, and dates days. The load is one transaction: if it is interrupted, no row stays.
    """
    with connection.cursor() as cursor:
        cursor.adbc_ingest(table, _as_the_server_has_it(connection, source, table), mode="append")
    connection.commit()


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows")
def unload_stream(connection, table, destination):
    """Write the table as Parquet, record batch by record batch as the driver builds them (fetch_record_batch).

    The driver wraps the query in COPY ... TO STDOUT (FORMAT binary) and builds a batch, here a row group, from every 8
    MiB (default: 16). A uuid arrives as 16 bytes. One statement returns the rows of one snapshot.
    """
    from adbc_driver_postgresql import StatementOptions

    hint = {StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(BATCH_BYTES)}
    with connection.cursor(adbc_stmt_kwargs=hint) as cursor:
        cursor.execute(f"SELECT * FROM {identifier(table)}")
        write_part(destination, "rows", cursor.fetch_record_batch())
    connection.rollback()  # ends the query's transaction


@transport("read_database(iter_batches=True), sink_parquet", "binary rows", requires=["pyarrow"])
def unload_polars_sink(connection, table, destination):
    """Let polars read batches over ADBC (read_database, iter_batches) and stream them into its own sink_parquet.

    register_io_source turns the batches into a LazyFrame, so you can put a polars query in between. A uuid arrives as
    16 bytes. A type that polars lacks arrives as the driver returns it. One statement returns the rows of one snapshot.
    """
    import polars as pl
    from polars.io.plugins import register_io_source

    query = f"SELECT * FROM {identifier(table)}"
    schema = pl.read_database(f"{query} LIMIT 0", connection).schema

    def frames(columns, predicate, rows, batch_size):
        yield from pl.read_database(query, connection, iter_batches=True, batch_size=65_536)

    register_io_source(frames, schema=schema).sink_parquet(f"{destination}/rows.parquet", compression="lz4")
    connection.rollback()  # ends the query's transaction
