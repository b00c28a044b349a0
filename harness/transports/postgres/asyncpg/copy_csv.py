"""asyncpg beyond the published code: executemany, and COPY as CSV with quoted strings: https://magicstack.github.io/asyncpg/"""

import io

from harness.registry import phase, transport
from harness.transports.postgres.asyncpg.client import received
from harness.transports.postgres.columns import arrow_of_csv, as_pandas, polars_of_csv
from harness.transports.postgres.sql import identifier, identifiers

BLOCK_ROWS = 65_536


def _insert(table, columns):
    """Return an INSERT of one row with every name quoted."""
    names = identifiers(columns)
    values = ", ".join(f"${position + 1}" for position in range(len(columns)))
    return f"INSERT INTO {identifier(table)} ({names}) VALUES ({values})"


def _python_rows(frame):
    """Yield every row as a tuple of Python values: None for a missing value, but NaN in a float column stays NaN."""
    columns = []
    for _, series in frame.items():
        values = series.tolist()
        if str(series.dtype) not in ("float64", "float32") and (missing := series.isna()).any():
            values = [None if gone else value for value, gone in zip(values, missing, strict=True)]
        columns.append(values)
    return zip(*columns, strict=True)


def _arrow_keeping_nan(frame):
    """Turn a pandas frame into Arrow: a missing value becomes null, but NaN in a float column stays NaN."""
    import pyarrow as pa

    floats = {name for name, dtype in frame.dtypes.items() if dtype.kind == "f"}
    columns = {name: pa.array(frame[name], from_pandas=name not in floats) for name in frame.columns}
    return pa.table(columns)


def _csv_of_arrow(table):
    """Return an Arrow table or batch as CSV: strings quoted, nulls empty, floats with all digits."""
    from pyarrow import csv

    buffer = io.BytesIO()
    csv.write_csv(table, buffer, csv.WriteOptions(include_header=False, quoting_style="needed"))
    return buffer.getvalue()


@transport("executemany", "rows")
async def write_polars_executemany(connection, frame, table):
    """Insert row by row with executemany: one prepared INSERT, whose arguments the driver streams.

    The driver encodes each value in binary and does not wait for an answer between rows. All rows are one transaction.
    asyncpg accepts uuid strings. It stores Python's first and last date as -infinity and infinity.
    """
    await connection.executemany(_insert(table, frame.columns), frame.iter_rows())


@transport("executemany", "rows")
async def write_pandas_executemany(connection, frame, table):
    """Insert row by row with executemany: one prepared INSERT, whose arguments the driver streams.

    Works like write_polars_executemany. Missing values first become None, because the driver refuses pandas' markers.
    NaN in a float column stays NaN.
    """
    await connection.executemany(_insert(table, frame.columns), _python_rows(frame))


@transport("COPY FROM STDIN", "delimited text")
async def write_polars_copy_csv_lossless(connection, frame, table):
    r"""Send the frame as one CSV string into COPY ... FROM STDIN with copy_to_table, strings quoted.

    The published code turns a string \N into NULL. Here every string is quoted, and an unquoted empty field is NULL,
    which is Postgres' default. asyncpg receives the buffer itself: it would read a file object in a thread, and take
    bytes for a file path.
    """
    with phase("encode"):
        text = frame.write_csv(include_header=False, quote_style="non_numeric").encode()
    with phase("send"):
        await connection.copy_to_table(table, source=memoryview(text), columns=frame.columns, format="csv")


@transport("COPY FROM STDIN", "delimited text")
async def write_pandas_copy_csv_lossless(connection, frame, table):
    r"""Send the frame as one CSV string, which Arrow prints, into COPY ... FROM STDIN with copy_to_table.

    The published code turns \N and NaN in a float column into NULL, and pandas' to_csv cannot tell a missing string
    from an empty one. Arrow quotes every string and leaves missing values empty. NaN in a float column stays NaN.
    """
    with phase("encode"):
        text = _csv_of_arrow(_arrow_keeping_nan(frame))
    with phase("send"):
        await connection.copy_to_table(table, source=memoryview(text), columns=list(frame.columns), format="csv")


@transport("COPY FROM STDIN, streamed", "delimited text")
async def write_polars_copy_csv_streamed(connection, frame, table):
    """Send the frame as CSV in blocks of 65,536 rows, which an async generator builds while the server reads.

    Works like write_polars_copy_csv_lossless, but never holds the whole CSV in memory. polars panics on dates outside
    Python's range, and asyncpg then waits forever for the end of the COPY.
    """

    async def blocks():
        for rows in frame.iter_slices(BLOCK_ROWS):
            yield rows.write_csv(include_header=False, quote_style="non_numeric").encode()

    await connection.copy_to_table(table, source=blocks(), columns=frame.columns, format="csv")


@transport("COPY FROM STDIN, streamed", "delimited text")
async def write_pandas_copy_csv_streamed(connection, frame, table):
    """Send the frame as CSV in blocks of 65,536 rows, which an async generator builds while the server reads.

    Works like write_pandas_copy_csv_lossless, but never holds the whole CSV in memory. Arrow prints the values.
    """

    async def blocks():
        for start in range(0, len(frame), BLOCK_ROWS):
            yield _csv_of_arrow(_arrow_keeping_nan(frame.iloc[start : start + BLOCK_ROWS]))

    await connection.copy_to_table(table, source=blocks(), columns=list(frame.columns), format="csv")


@transport("COPY TO STDOUT", "delimited text")
async def read_polars_copy_csv_lossless(connection, table):
    """Collect COPY ... TO STDOUT as CSV through a coroutine and parse it with polars.read_csv and the table's types.

    The server quotes an empty string and leaves NULL empty, and polars tells the two apart. The transport asks the
    server for the types. Values other than numbers and dates stay strings as the server prints them, including uuids.
    """
    with phase("receive"):
        text, types = await received(connection, table, format="csv", header=True)
    with phase("decode"):
        return polars_of_csv(text, types)


@transport("COPY TO STDOUT", "delimited text")
async def read_pandas_copy_csv_lossless(connection, table):
    """Collect COPY ... TO STDOUT as CSV through a coroutine, parse it with Arrow and the table's types, for pandas.

    pandas' parser cannot tell a quoted empty string from a NULL, but Arrow's can. Values other than numbers and dates
    stay strings as the server prints them, including uuids. An integer column with nulls arrives as a nullable type
    such as Int64, a date as datetime64[us]. A null in a float column is NaN, as always in pandas.
    """
    with phase("receive"):
        text, types = await received(connection, table, format="csv", header=True)
    with phase("decode"):
        return as_pandas(arrow_of_csv(text, types))
