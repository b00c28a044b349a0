"""SQLAlchemy's inline inserts of text, so that every value comes through: https://github.com/xzkostyan/clickhouse-sqlalchemy"""

import csv
import io
from contextlib import contextmanager

from harness.registry import phase, transport
from harness.transports.clickhouse.sql import identifier, identifiers

CLIENT = "sqlalchemy"
ENDPOINT = "clickhouse_native"

# Since 26.2 ClickHouse collects small inserts for up to 200 ms before it writes them: that wait is not the transport's.
INSERT_SETTINGS = {"async_insert": "0"}

# Rows inside the query text: since 26.5 a server parses them itself when it is told not to send the table's structure
# first; otherwise it waits for native blocks, which never come. (Before 26.5 it parsed them for async_insert=1 only.)
# precise_float_parsing is the default since 26.7; before, a double parsed from text could lose its last bit.
# An empty field that is not quoted is null or the default: the server's default, on which a null from pyarrow depends.
TEXT_INSERT_SETTINGS = {
    **INSERT_SETTINGS,
    "send_table_structure_on_insert_with_inline_data": "0",
    "precise_float_parsing": "1",
    "input_format_csv_empty_as_default": "1",
}


@contextmanager
def connect(uri):
    """Yield a SQLAlchemy connection.

    The dialect closes the native connection with every result it has read (clickhouse-sqlalchemy 0.3.2): every read,
    and the first write, connects anew, and that is part of its time.

    Settings are marked important: a server older than 26.5 refuses the inline inserts with code 115 (UNKNOWN_SETTING)
    instead of ignoring a setting it does not know and waiting forever.
    """
    from sqlalchemy import create_engine, make_url

    url = make_url(uri).set(drivername="clickhouse+native").update_query_dict({"settings_is_important": "1"})
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _insert_text(connection, table, columns, format_name, payload):
    names = identifiers(columns)
    query = f"INSERT INTO {identifier(table)} ({names}) FORMAT {format_name}\n{payload}"
    # The driver fills the parameters in with the % operator, even when there are none: a % of the data must be doubled.
    connection.exec_driver_sql(query.replace("%", "%%"), execution_options={"settings": TEXT_INSERT_SETTINGS})


def _polars_tsv(frame):
    """Return the frame as ClickHouse wants TabSeparated: not quoted, but escaped; a null is an unescaped \\N."""
    import polars as pl

    escaped = pl.col(pl.String).str.replace_many(["\\", "\t", "\n", "\r"], [r"\\", r"\t", r"\n", r"\r"])
    layout = {"include_header": False, "separator": "\t", "quote_style": "never", "null_value": r"\N"}
    return frame.with_columns(escaped).write_csv(file=None, **layout)


def _pandas_csv(frame):
    """Return the frame as pyarrow writes CSV: every text quoted, a null empty, a NaN as nan, a midnight as a date.

    pandas itself quotes a null as it quotes a text.
    """
    import pyarrow as pa
    import pyarrow.csv

    arrays = {
        name: pa.array(values.to_numpy() if values.dtype in ("float64", "float32") else values)
        for name, values in frame.items()
    }
    dates = {name: array.cast("date32") for name, array in arrays.items() if pa.types.is_timestamp(array.type)}
    buffer = io.BytesIO()
    pyarrow.csv.write_csv(pa.table(arrays | dates), buffer, pyarrow.csv.WriteOptions(include_header=False))
    return buffer.getvalue().decode()


def _pandas_tsv(frame):
    """Return the frame as ClickHouse wants TabSeparated: not quoted, but escaped; a null is an unescaped \\N."""
    texts = {}
    for name, values in frame.items():
        if values.dtype in ("float64", "float32") and values.hasnans:
            texts[name] = [repr(value) for value in values.tolist()]  # na_rep is for nulls
        elif values.dtype == "str":
            for plain, escaped in (("\\", r"\\"), ("\t", r"\t"), ("\n", r"\n"), ("\r", r"\r")):
                values = values.str.replace(plain, escaped, regex=False)
            texts[name] = values.fillna(r"\N")
    layout = {"sep": "\t", "na_rep": r"\N", "quoting": csv.QUOTE_NONE}
    return frame.assign(**texts).to_csv(None, index=False, header=False, **layout)


@transport(
    "write",
    frame="polars",
    path="native INSERT FORMAT CSV, lossless",
    payload="delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base", "polars", "sqlalchemy"],
    settings=TEXT_INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 float64_beyond_float32 "
        "dates_beyond float32_into_float64",
        "refused": "booleans arrays nested float64_into_int32 timestamp_into_date boolean_into_int32 "
        "int32_into_date timestamp_into_int64",
        "hangs": "zero_rows",
    },
)
def write_polars_insert_csv_lossless(connection, frame, table):
    r"""Send the frame as CSV inside the query text, all texts quoted and nulls as a bare \N.

    The published way with quotes: empty texts, spaces around a text and a text \N come through, and so do nulls.
    """
    with phase("encode"):
        payload = frame.write_csv(file=None, include_header=False, quote_style="non_numeric", null_value=r"\N")
    with phase("send"):
        _insert_text(connection, table, frame.columns, "CSV", payload)


@transport(
    "write",
    frame="polars",
    path="native INSERT FORMAT TSV, lossless",
    payload="delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base", "polars", "sqlalchemy"],
    settings=TEXT_INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 float64_beyond_float32 "
        "dates_beyond float32_into_float64",
        "refused": "arrays nested float64_into_int32 timestamp_into_date boolean_into_int32 int32_into_date "
        "timestamp_into_int64",
        "hangs": "zero_rows",
    },
)
def write_polars_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped as ClickHouse wants it.

    The published way without quotes and with \\, \t, \n, \r and \N instead: every text and every null comes through.
    """
    with phase("encode"):
        payload = _polars_tsv(frame)
    with phase("send"):
        _insert_text(connection, table, frame.columns, "TabSeparated", payload)


@transport(
    "write",
    frame="pandas",
    path="native INSERT FORMAT CSV, lossless",
    payload="delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base", "pandas", "pyarrow.csv", "sqlalchemy"],
    settings=TEXT_INSERT_SETTINGS,
    lossy={
        "changed": "timestamps timestamps_tz int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 "
        "float64_beyond_float32 dates_beyond float32_into_float64",
        "refused": "arrays nested boolean_into_int32 int32_into_date timestamp_into_int64",
        "hangs": "zero_rows",
    },
)
def write_pandas_insert_csv_lossless(connection, frame, table):
    """Send the frame as CSV inside the query text, written by pyarrow: all texts quoted, nulls empty.

    The published way with another writer: empty texts, spaces around a text and a NaN come through, and so do nulls.
    """
    with phase("encode"):
        payload = _pandas_csv(frame)
    with phase("send"):
        _insert_text(connection, table, frame.columns, "CSV", payload)


@transport(
    "write",
    frame="pandas",
    path="native INSERT FORMAT TSV, lossless",
    payload="delimited text",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base", "pandas", "sqlalchemy"],
    settings=TEXT_INSERT_SETTINGS,
    lossy={
        "changed": "int64_beyond_int32 uint32_beyond_int32 uint64_beyond_int64 float64_beyond_float32 "
        "dates_beyond float32_into_float64",
        "refused": "arrays nested float64_into_int32 boolean_into_int32 int32_into_date timestamp_into_int64",
        "hangs": "zero_rows",
    },
)
def write_pandas_insert_tsv_lossless(connection, frame, table):
    r"""Send the frame as tab-separated text inside the query text, escaped as ClickHouse wants it.

    The published way without quotes and with \\, \t, \n, \r and \N instead: every text, NaN and null comes through.
    """
    with phase("encode"):
        payload = _pandas_tsv(frame)
    with phase("send"):
        _insert_text(connection, table, frame.columns, "TabSeparated", payload)
