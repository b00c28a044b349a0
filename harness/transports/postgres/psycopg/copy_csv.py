r"""psycopg 3 with COPY as CSV that keeps nulls and strings apart: https://www.postgresql.org/docs/current/sql-copy.html

In Postgres' CSV an unquoted empty field is NULL and `""` is the empty string. These transports follow that rule. The
published recipes instead mark a null with \N and let the reader guess types. Their docstrings list what they lose. The
streams come last.
"""

import csv
import io
from contextlib import contextmanager

from harness.registry import phase, transport
from harness.transports.parts import batches, gathered, write_part
from harness.transports.postgres.columns import arrow_schema, polars_schema
from harness.transports.postgres.psycopg.client import received
from harness.transports.postgres.sql import copy_from_stdin, copy_to_stdout, identifier, identifiers, literal
from harness.transports.postgres.tables import types_of

BLOCK_BYTES = 1 << 20
SLICE_ROWS = 10_000
PARSED_BYTES = 2 << 20  # of CSV parsed at a time
CHUNK_ROWS = 65_536  # rows of a polars batch, and of a row group


def _copy_from_stdin(table, columns, null=""):
    """Return COPY ... FROM STDIN in CSV, with every name quoted; `null` means NULL even in quotes."""
    options = f"NULL {literal(null)}, FORCE_NULL ({identifiers(columns)})" if null else "NULL ''"
    return copy_from_stdin(table, columns, f"WITH (FORMAT csv, {options})")


@transport("COPY FROM STDIN", "delimited text")
def write_polars_copy_csv_lossless(connection, frame, table):
    """Send the frame as one CSV, strings quoted and nulls empty, into COPY ... FROM STDIN.

    The client sends text, and the server parses every value again. polars writes floats with as many digits as they
    need, and NaN, inf and -0.0 as Postgres reads them.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame.write_csv(buffer, include_header=False, quote_style="non_numeric")
    with phase("send"), connection.cursor().copy(_copy_from_stdin(table, frame.columns)) as copy:
        copy.write(buffer.getbuffer())


@transport("COPY FROM STDIN", "delimited text")
def write_polars_copy_csv_blocks(connection, frame, table):
    """Send the frame as one CSV, strings quoted, to COPY ... FROM STDIN in blocks of 1 MiB instead of one buffer.

    psycopg 3.3 cuts any input into pieces of 128 KiB, so this should take as long as one buffer. The transport exists
    to show that.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame.write_csv(buffer, include_header=False, quote_style="non_numeric")
    payload = buffer.getbuffer()
    with phase("send"), connection.cursor().copy(_copy_from_stdin(table, frame.columns)) as copy:
        for start in range(0, len(payload), BLOCK_BYTES):
            copy.write(payload[start : start + BLOCK_BYTES])


@transport("COPY FROM STDIN", "delimited text")
def write_polars_copy_csv_slices(connection, frame, table):
    """Send the frame as CSV with quoted strings, 10,000 rows at a time, into one COPY ... FROM STDIN.

    The CSV of the whole frame is never in memory. The server parses one slice while the client builds the next.
    """
    with connection.cursor().copy(_copy_from_stdin(table, frame.columns)) as copy:
        for part in frame.iter_slices(SLICE_ROWS):
            copy.write(part.write_csv(include_header=False, quote_style="non_numeric"))


def _writable(frame):
    """Return the frame ready for `to_csv`, and a string that is not one of its values, to mark missing values.

    `to_csv` has one marker for all missing values and uses it for NaN as well, so NaN in a float column becomes the
    string NaN.
    """
    floats = [name for name in frame.columns if frame[name].dtype in ("float64", "float32") and frame[name].hasnans]
    frame = frame.assign(**{name: frame[name].astype(object).where(frame[name].notna(), "NaN") for name in floats})
    strings, null = frame.select_dtypes(include=["object", "string"]), r"\N"
    while (strings == null).any(axis=None):
        null += "N"
    return frame, null


@transport("COPY FROM STDIN", "delimited text")
def write_pandas_copy_csv_lossless(connection, frame, table):
    r"""Send the frame as one CSV with strings and nulls quoted; the null marker is not a value of the frame.

    The client sends text, and the server parses every value again. `to_csv` quotes the null marker like any other
    string, and FORCE_NULL makes the server accept it in quotes. The marker is \N, or \NN if a string is \N. NaN in a
    float column arrives as NaN.
    """
    buffer = io.BytesIO()
    with phase("encode"):
        frame, null = _writable(frame)
        frame.to_csv(buffer, index=False, header=False, quoting=csv.QUOTE_NONNUMERIC, na_rep=null)
    with phase("send"), connection.cursor().copy(_copy_from_stdin(table, frame.columns, null)) as copy:
        copy.write(buffer.getbuffer())


@transport("COPY FROM STDIN", "delimited text")
def write_pandas_copy_csv_slices(connection, frame, table):
    """Send the frame as CSV with quoted strings, 10,000 rows at a time, into one COPY ... FROM STDIN.

    The CSV of the whole frame is never in memory. The server parses one slice while the client builds the next.
    """
    frame, null = _writable(frame)
    with connection.cursor().copy(_copy_from_stdin(table, frame.columns, null)) as copy:
        for start in range(0, len(frame), SLICE_ROWS):
            part = frame.iloc[start : start + SLICE_ROWS]
            copy.write(part.to_csv(index=False, header=False, quoting=csv.QUOTE_NONNUMERIC, na_rep=null))


@contextmanager
def _key_remade(connection, table):
    """Drop a table's primary key and add it again, in one transaction: other sessions can read the table afterwards.

    https://www.postgresql.org/docs/current/populate.html
    """
    named = identifier(table)
    asked = (
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'p'"
    )
    with connection.transaction():
        keys = connection.execute(asked, [named]).fetchall()
        for name, _ in keys:
            connection.execute(f"ALTER TABLE {named} DROP CONSTRAINT {identifier(name)}")
        yield
        for name, definition in keys:
            connection.execute(f"ALTER TABLE {named} ADD CONSTRAINT {identifier(name)} {definition}")


@transport("COPY FROM STDIN, index afterwards", "delimited text")
def write_polars_copy_csv_index_remade(connection, frame, table):
    """Like write_polars_copy_csv_lossless, but drop the primary key first and add it again at the end, as by hand."""
    buffer = io.BytesIO()
    with phase("encode"):
        frame.write_csv(buffer, include_header=False, quote_style="non_numeric")
    statement = _copy_from_stdin(table, frame.columns)
    with phase("send"), _key_remade(connection, table), connection.cursor().copy(statement) as copy:
        copy.write(buffer.getbuffer())


@transport("COPY FROM STDIN, index afterwards", "delimited text")
def write_pandas_copy_csv_index_remade(connection, frame, table):
    """Like write_pandas_copy_csv_lossless, but drop the primary key first and add it again at the end, as by hand."""
    buffer = io.BytesIO()
    with phase("encode"):
        frame, null = _writable(frame)
        frame.to_csv(buffer, index=False, header=False, quoting=csv.QUOTE_NONNUMERIC, na_rep=null)
    statement = _copy_from_stdin(table, frame.columns, null)
    with phase("send"), _key_remade(connection, table), connection.cursor().copy(statement) as copy:
        copy.write(buffer.getbuffer())


@transport("COPY TO STDOUT", "delimited text")
def read_polars_copy_csv_lossless(connection, table):
    """Collect COPY ... TO STDOUT as CSV and parse it with polars.read_csv and the table's types.

    The server sends text. The transport asks it for the types, so polars guesses nothing. polars reads an empty field
    as null and `""` as the empty string, as the server writes them. A uuid stays String, as does any type not listed
    here.
    """
    import polars as pl

    with phase("receive"):
        schema = polars_schema(types_of(connection, table))
        buffer = received(connection, copy_to_stdout(table, "WITH (FORMAT csv)"))
    with phase("decode"):
        return pl.read_csv(buffer, has_header=False, schema=schema)


@transport("COPY TO STDOUT", "delimited text")
def read_pandas_copy_csv_lossless(connection, table):
    """Collect COPY ... TO STDOUT as CSV and parse it with pyarrow.csv and the table's types.

    The server sends text. pandas.read_csv reads `""` as missing with every engine, so pyarrow's reader is used, which
    tells it from an empty field. The transport asks the server for the types. A date becomes datetime64, an integer
    with nulls Int32 or Int64. A uuid stays str, as does any type not listed here. A null float is NaN.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    with phase("receive"):
        columns = arrow_schema(types_of(connection, table))
        columns |= {name: pa.timestamp("us") for name, dtype in columns.items() if dtype == pa.date32()}
        buffer = received(connection, copy_to_stdout(table, "WITH (FORMAT csv)"))
    with phase("decode"):
        if not buffer.getbuffer():  # pyarrow refuses an empty CSV
            arrow = pa.schema(columns.items()).empty_table()
        else:
            arrow = read_csv(
                buffer,
                ReadOptions(column_names=list(columns)),
                ParseOptions(newlines_in_values=True),
                ConvertOptions(
                    column_types=columns, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
                ),
            )
        nullable = {pa.int16(): pd.Int16Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}
        frame = arrow.to_pandas(types_mapper=nullable.get)
        whole = [name for name in columns if pa.types.is_integer(columns[name]) and not arrow[name].null_count]
        return frame.astype({name: columns[name].to_pandas_dtype() for name in whole})


@transport("COPY FROM STDIN", "delimited text")
def load_copy_csv(connection, source, table):
    """Write each record batch of a Parquet file as CSV with pyarrow.csv, all into one COPY ... FROM STDIN.

    The client sends text, and the server parses every value again. Every string is quoted and a null is an empty field,
    which preserves empty strings, quotes and line breaks. Floats have as many digits as they need. pyarrow writes no
    CSV of lists and structs. The load is one statement: if it is interrupted, no row stays.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    columns = parquet.read_schema(source).names
    with connection.cursor().copy(copy_from_stdin(table, columns, "(FORMAT csv)")) as copy:
        for batch in batches(source):
            text = pa.BufferOutputStream()
            arrow_csv.write_csv(batch, text, arrow_csv.WriteOptions(include_header=False))
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
        if size >= PARSED_BYTES:
            yield b"".join(rows)
            rows, size = [], 0
    if rows:
        yield b"".join(rows)


def _parsed(block, columns):
    """Return a block of CSV as an Arrow table with columns of these types."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(
        pa.BufferReader(block),
        arrow_csv.ReadOptions(column_names=list(columns), block_size=len(block) + 1),
        arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        arrow_csv.ConvertOptions(
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
