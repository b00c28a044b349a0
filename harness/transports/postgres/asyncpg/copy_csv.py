"""asyncpg beyond the published recipes: executemany, and COPY as CSV without loss: https://magicstack.github.io/asyncpg/"""

import io

from harness.registry import phase, transport
from harness.transports.postgres.asyncpg.client import TYPES
from harness.transports.postgres.columns import as_pandas
from harness.transports.postgres.sql import identifier, identifiers

BLOCK_ROWS = 65_536


def _insert(table, columns):
    """Return an INSERT of one row with every name quoted."""
    names = identifiers(columns)
    values = ", ".join(f"${position + 1}" for position in range(len(columns)))
    return f"INSERT INTO {identifier(table)} ({names}) VALUES ({values})"


def _python_rows(frame):
    """Yield every row as a tuple of Python values: None for what is missing, but a NaN among floats stays NaN."""
    columns = []
    for _, series in frame.items():
        values = series.tolist()
        if str(series.dtype) not in ("float64", "float32") and (missing := series.isna()).any():
            values = [None if gone else value for value, gone in zip(values, missing, strict=True)]
        columns.append(values)
    return zip(*columns, strict=True)


def _arrow_keeping_nan(frame):
    """Turn a pandas frame into Arrow: what is missing becomes null, but a NaN among floats stays NaN."""
    import pyarrow as pa

    floats = {name for name, dtype in frame.dtypes.items() if dtype.kind == "f"}
    columns = {name: pa.array(frame[name], from_pandas=name not in floats) for name in frame.columns}
    return pa.table(columns)


def _csv_of_arrow(table):
    """Return an Arrow table or batch as CSV: texts quoted, nulls empty, floats in full."""
    from pyarrow import csv

    buffer = io.BytesIO()
    csv.write_csv(table, buffer, csv.WriteOptions(include_header=False, quoting_style="needed"))
    return buffer.getvalue()


async def _receive_csv(connection, table):
    """Return what COPY ... TO STDOUT sends as CSV under a line of names, and the type of every column by name."""
    query = f"SELECT * FROM {identifier(table)}"  # COPY of a table leaves out columns that the server generates
    statement = await connection.prepare(query)
    types = {column.name: column.type.name for column in statement.get_attributes()}
    blocks = []

    async def keep(block):
        blocks.append(block)

    await connection.copy_from_query(query, output=keep, format="csv", header=True)
    return b"".join(blocks), types


@transport(
    "write",
    frame="polars",
    path="executemany",
    payload="rows",
    requires=["polars", "asyncpg"],
    lossy={
        "changed": "dates timestamps timestamps_tz fraction_into_int32",
        "refused": "far_dates int32_into_text text_into_int32 text_into_date",
    },
)
async def write_polars_executemany(connection, frame, table):
    """Insert row by row with executemany: one prepared INSERT, whose arguments the driver sends in a stream.

    The driver encodes each value in binary and does not wait for an answer between rows; all rows are one transaction.
    It takes the text of a uuid as it is, and Python's first and last date for infinite ones.
    """
    await connection.executemany(_insert(table, frame.columns), frame.iter_rows())


@transport(
    "write",
    frame="pandas",
    path="executemany",
    payload="rows",
    requires=["pandas", "asyncpg"],
    lossy={
        "changed": "dates timestamps timestamps_tz fraction_into_int32",
        "refused": "int32_into_text text_into_int32 text_into_date",
    },
)
async def write_pandas_executemany(connection, frame, table):
    """Insert row by row with executemany: one prepared INSERT, whose arguments the driver sends in a stream.

    As from polars. What is missing becomes None first, as the driver refuses pandas' own marks; but a NaN among floats
    stays NaN.
    """
    await connection.executemany(_insert(table, frame.columns), _python_rows(frame))


@transport(
    "write",
    frame="polars",
    path="COPY FROM STDIN",
    payload="delimited text",
    requires=["polars", "asyncpg"],
    lossy={"changed": "float32_into_float64", "refused": "far_dates arrays float64_into_int32"},
)
async def write_polars_copy_csv_lossless(connection, frame, table):
    r"""Send the frame as one CSV text into COPY ... FROM STDIN with copy_to_table, without loss.

    The twin of the published recipe, on which a text that is itself \N becomes NULL: here every text is quoted, and an
    empty field without quotes is NULL, which is Postgres' own rule. The buffer is handed over as it is: from a file
    object asyncpg would read blocks in a thread, and bytes it takes for the path of a file.
    """
    with phase("encode"):
        text = frame.write_csv(include_header=False, quote_style="non_numeric").encode()
    with phase("send"):
        await connection.copy_to_table(table, source=memoryview(text), columns=frame.columns, format="csv")


@transport(
    "write",
    frame="pandas",
    path="COPY FROM STDIN",
    payload="delimited text",
    requires=["pandas", "pyarrow", "pyarrow.csv", "asyncpg"],
    lossy={"changed": "float32_into_float64", "refused": "arrays"},
)
async def write_pandas_copy_csv_lossless(connection, frame, table):
    r"""Send the frame as one CSV text, which Arrow prints, into COPY ... FROM STDIN with copy_to_table, without loss.

    The twin of the published recipe, on which \N and a floating NaN become NULL: pandas' own to_csv cannot tell a
    missing text from an empty one. Arrow quotes every text and leaves what is missing empty; a floating NaN stays NaN.
    """
    with phase("encode"):
        text = _csv_of_arrow(_arrow_keeping_nan(frame))
    with phase("send"):
        await connection.copy_to_table(table, source=memoryview(text), columns=list(frame.columns), format="csv")


@transport(
    "write",
    frame="polars",
    path="COPY FROM STDIN, streamed",
    payload="delimited text",
    requires=["polars", "asyncpg"],
    lossy={"changed": "float32_into_float64", "refused": "arrays float64_into_int32", "hangs": "far_dates"},
)
async def write_polars_copy_csv_streamed(connection, frame, table):
    """Send the frame as CSV in blocks of 65,536 rows, which an async generator makes while the server reads.

    As lossless as the whole text at once, which never stands in memory here. polars panics at dates that Python does
    not have, and asyncpg then waits for ever for the end of the copy.
    """

    async def blocks():
        for rows in frame.iter_slices(BLOCK_ROWS):
            yield rows.write_csv(include_header=False, quote_style="non_numeric").encode()

    await connection.copy_to_table(table, source=blocks(), columns=frame.columns, format="csv")


@transport(
    "write",
    frame="pandas",
    path="COPY FROM STDIN, streamed",
    payload="delimited text",
    requires=["pandas", "pyarrow", "pyarrow.csv", "asyncpg"],
    lossy={"changed": "float32_into_float64", "refused": "arrays"},
)
async def write_pandas_copy_csv_streamed(connection, frame, table):
    """Send the frame as CSV in blocks of 65,536 rows, which an async generator makes while the server reads.

    As lossless as the whole text at once, which never stands in memory here; Arrow prints the values.
    """

    async def blocks():
        for start in range(0, len(frame), BLOCK_ROWS):
            yield _csv_of_arrow(_arrow_keeping_nan(frame.iloc[start : start + BLOCK_ROWS]))

    await connection.copy_to_table(table, source=blocks(), columns=list(frame.columns), format="csv")


@transport(
    "read",
    frame="polars",
    path="COPY TO STDOUT",
    payload="delimited text",
    requires=["polars", "asyncpg"],
    lossy={"changed": "arrays", "refused": "far_dates"},
)
async def read_polars_copy_csv_lossless(connection, table):
    """Collect COPY ... TO STDOUT as CSV through a coroutine and parse it with polars.read_csv and the table's types.

    The server quotes an empty text and leaves NULL empty, and polars tells the two apart. The server is asked for the
    types; whatever is neither number nor date stays the text that the server prints, a uuid among them.
    """
    import polars as pl

    with phase("receive"):
        text, types = await _receive_csv(connection, table)
    with phase("decode"):
        wanted = {name: getattr(pl, TYPES.get(sql_type, ("String",))[0]) for name, sql_type in types.items()}
        # The names in the first line it would take with the quotes in them doubled.
        return pl.read_csv(text, has_header=False, skip_rows=1, schema=wanted)


@transport(
    "read",
    frame="pandas",
    path="COPY TO STDOUT",
    payload="delimited text",
    requires=["pandas", "pyarrow", "pyarrow.csv", "asyncpg"],
    lossy={"changed": "arrays", "refused": "far_dates"},
)
async def read_pandas_copy_csv_lossless(connection, table):
    """Collect COPY ... TO STDOUT as CSV through a coroutine, parse it with Arrow and the table's types, for pandas.

    pandas' own parser cannot tell a quoted empty text from a NULL; Arrow's can. Whatever is neither number nor
    date stays the text that the server prints, a uuid among them. An integer column with nulls comes as Int64 and the
    like, a date as datetime64[us]. A null among floats is NaN, as always in pandas.
    """
    import pyarrow as pa
    from pyarrow import csv

    with phase("receive"):
        text, types = await _receive_csv(connection, table)
    with phase("decode"):
        convert = csv.ConvertOptions(
            column_types={
                name: getattr(pa, TYPES.get(sql_type, ("", "string"))[1])() for name, sql_type in types.items()
            },
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
        return as_pandas(csv.read_csv(pa.BufferReader(text), parse_options=parse, convert_options=convert))
