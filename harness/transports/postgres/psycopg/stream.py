"""Streams of CSV and binary rows through psycopg: https://www.postgresql.org/docs/current/sql-copy.html"""

from harness.registry import transport
from harness.transports.parts import batches, gathered, write_part
from harness.transports.postgres.sql import copy_from_stdin, copy_to_stdout
from harness.transports.postgres.tables import types_of

BLOCK_BYTES = 2 << 20  # of CSV parsed at a time
CHUNK_ROWS = 65_536  # rows of a polars batch, and of a row group


@transport("COPY FROM STDIN", "delimited text")
def load_copy_csv(connection, source, table):
    """Write each record batch of a Parquet file as CSV with pyarrow.csv, all into one COPY ... FROM STDIN.

    The client sends text, and the server parses every value again. Every string is quoted and a null is an empty field,
    which preserves empty strings, quotes and line breaks. Floats have as many digits as they need. pyarrow writes no
    CSV of lists and structs. The load is one statement: if it is interrupted, no row stays.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    columns = parquet.read_schema(source).names
    with connection.cursor().copy(copy_from_stdin(table, columns, "(FORMAT csv)")) as copy:
        for batch in batches(source):
            text = pa.BufferOutputStream()
            csv.write_csv(batch, text, csv.WriteOptions(include_header=False))
            copy.write(memoryview(text.getvalue()))


@transport("sink_batches, COPY FROM STDIN", "delimited text", requires=["pyarrow.parquet"])
def load_polars_sink(connection, source, table):
    """Let polars scan a Parquet file and pass every batch of rows (sink_batches) as CSV to one COPY ... FROM STDIN.

    polars reads ahead in its own threads while the server parses. You can put a polars query before the sink. Every
    string is quoted and a null is an empty field. The load is one statement: if it is interrupted, no row stays.
    """
    import polars as pl

    frame = pl.scan_parquet(source, glob=False)
    columns = frame.collect_schema().names()
    with connection.cursor().copy(copy_from_stdin(table, columns, "(FORMAT csv)")) as copy:
        frame.sink_batches(
            lambda batch: copy.write(batch.write_csv(include_header=False, quote_style="non_numeric")),
            chunk_size=CHUNK_ROWS,
        )


def _blocks(copy):
    """Yield a COPY's data in blocks of whole rows; the server sends every row in a separate message."""
    rows, size = [], 0
    for row in copy:
        rows.append(bytes(row))
        size += len(row)
        if size >= BLOCK_BYTES:
            yield b"".join(rows)
            rows, size = [], 0
    if rows:
        yield b"".join(rows)


def _parsed(block, columns):
    """Return a block of CSV as an Arrow table with columns of these types."""
    import pyarrow as pa
    from pyarrow import csv

    return csv.read_csv(
        pa.BufferReader(block),
        csv.ReadOptions(column_names=list(columns), block_size=len(block) + 1),
        csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        csv.ConvertOptions(
            column_types=columns,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        ),
    )


@transport("COPY TO STDOUT", "delimited text")
def unload_copy_csv(connection, table, destination):
    """Parse the CSV of COPY ... TO STDOUT with pyarrow.csv, 2 MB at a time, and write it as Parquet.

    The server sends text. The transport asks it for the types, and makes it write times of UTC in ISO 8601. A uuid, a
    numeric and any type not listed here stay strings. `""` is the empty string and an empty field a null, as the server
    writes them. Dates before the year 1 and infinite dates are refused. One statement returns the rows of one snapshot.
    """
    import pyarrow as pa

    types = {
        "bool": pa.bool_(),
        "int2": pa.int16(),
        "int4": pa.int32(),
        "int8": pa.int64(),
        "float4": pa.float32(),
        "float8": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
    }
    connection.execute("SELECT set_config('datestyle', 'ISO', false), set_config('timezone', 'UTC', false)")
    columns = {name: types.get(sql_type, pa.string()) for name, sql_type in types_of(connection, table).items()}
    with connection.cursor().copy(copy_to_stdout(table, "(FORMAT csv)")) as copy:
        parsed = (batch for block in _blocks(copy) for batch in _parsed(block, columns).to_batches())
        write_part(destination, "rows", map(pa.concat_batches, gathered(parsed, CHUNK_ROWS)))
