"""CSVWithNames and JSONEachRow over HTTP, with settings that preserve values: https://clickhouse.com/docs/interfaces/formats"""

import io

from harness.registry import transport
from harness.transports.clickhouse.columns import arrow_csv, polars_csv_lossless
from harness.transports.clickhouse.httpx.client import insert

# Since 26.2 ClickHouse collects small inserts for up to 200 ms before it writes them; async_insert=0 keeps that wait
# out of the time. precise_float_parsing is the default since 26.7; before, a double parsed from text could lose its
# last bit. An unquoted empty field becomes null or the default: this is the server's default, and nulls from pyarrow
# depend on it.
TEXT_SETTINGS = {
    "async_insert": "0",
    "precise_float_parsing": "1",
    "input_format_csv_empty_as_default": "1",
}


def _polars_csv(frame):
    return polars_csv_lossless(frame, include_header=True).encode()


def _polars_json(frame):
    import polars as pl
    import polars.selectors as cs

    buffer = io.BytesIO()
    odd = [column.name for column in frame.select(cs.float()) if not column.is_finite().all()]
    frame.with_columns(cs.by_name(odd).cast(pl.String)).write_ndjson(buffer)
    return buffer.getbuffer()


def _pandas_json(frame):
    strings = {}
    for name, values in frame.items():
        if values.dtype in ("float64", "float32"):
            strings[name] = [repr(value) for value in values.tolist()]
        elif values.dtype.kind == "M":
            strings[name] = values.dt.strftime("%Y-%m-%d")
    return frame.assign(**strings).to_json(None, orient="records", lines=True).encode()


@transport("HTTP INSERT FORMAT CSVWithNames", "delimited text", settings=TEXT_SETTINGS)
def write_polars_csv_with_names(connection, frame, table):
    r"""Send the frame as CSV with a header, in the body of a POST request.

    Every string is quoted and a null is an unquoted \N, so spaces, empty strings and a string \N stay distinct from
    nulls. The server parses every value again.
    """
    insert(connection, frame, table, "CSVWithNames", _polars_csv, settings=TEXT_SETTINGS)


@transport("HTTP INSERT FORMAT CSVWithNames", "delimited text", settings=TEXT_SETTINGS)
def write_pandas_csv_with_names(connection, frame, table):
    """Send the frame as CSV with a header, written by pyarrow, in the body of a POST request.

    pandas itself quotes a null like a string. pyarrow quotes every string and leaves a null empty. An empty field
    arrives as the column's default, which is null in a Nullable column. The server parses every value again. A NaN
    arrives as NaN.
    """
    insert(connection, frame, table, "CSVWithNames", arrow_csv, settings=TEXT_SETTINGS)


@transport("HTTP INSERT FORMAT JSONEachRow", "JSON", settings=TEXT_SETTINGS)
def write_polars_json(connection, frame, table):
    """Send the frame as one JSON object per row in the body of a POST request.

    Every row repeats all names, and the server parses every value again. JSON has no NaN or infinity, for which polars
    writes null. A float column with such values is therefore sent as strings, which the server parses as floats.
    """
    insert(connection, frame, table, "JSONEachRow", _polars_json, settings=TEXT_SETTINGS)


@transport("HTTP INSERT FORMAT JSONEachRow", "JSON", settings=TEXT_SETTINGS)
def write_pandas_json(connection, frame, table):
    """Send the frame as one JSON object per row in the body of a POST request.

    Every row repeats all names, and the server parses every value again. pandas would write 15 digits of a double, null
    for a NaN, and a time after a date. This transport therefore first turns floats and dates into strings, which the
    server parses correctly.
    """
    insert(connection, frame, table, "JSONEachRow", _pandas_json, settings=TEXT_SETTINGS)
