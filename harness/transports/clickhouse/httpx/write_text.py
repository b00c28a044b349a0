"""CSVWithNames and JSONEachRow over HTTP, with settings that preserve values: https://clickhouse.com/docs/interfaces/formats"""

import io

from harness.registry import phase, transport
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


def _arrow_table(frame):
    """Return a pandas frame as Arrow: a NaN in a float column stays NaN, a midnight becomes a date."""
    import pyarrow as pa

    arrays = {
        name: pa.array(values.to_numpy() if values.dtype in ("float64", "float32") else values)
        for name, values in frame.items()
    }
    # A timestamp with a time of day is refused here, as a Date column refuses it.
    return pa.table(
        {name: array.cast("date32") if pa.types.is_timestamp(array.type) else array for name, array in arrays.items()}
    )


@transport("HTTP INSERT FORMAT CSVWithNames", "delimited text", settings=TEXT_SETTINGS)
def write_polars_csv_with_names(connection, frame, table):
    r"""Send the frame as CSV with a header, in the body of a POST request.

    Every string is quoted and a null is an unquoted \N, so spaces, empty strings and a string \N stay distinct from
    nulls. The server parses every value again.
    """
    with phase("encode"):
        body = frame.write_csv(file=None, quote_style="non_numeric", null_value=r"\N").encode()
    insert(connection, table, frame.columns, "CSVWithNames", body, TEXT_SETTINGS)


@transport("HTTP INSERT FORMAT CSVWithNames", "delimited text", settings=TEXT_SETTINGS)
def write_pandas_csv_with_names(connection, frame, table):
    """Send the frame as CSV with a header, written by pyarrow, in the body of a POST request.

    pandas itself quotes a null like a string. pyarrow quotes every string and leaves a null empty. An empty field
    arrives as the column's default, which is null in a Nullable column. The server parses every value again. A NaN
    arrives as NaN.
    """
    import pyarrow.csv

    buffer = io.BytesIO()
    with phase("encode"):
        pyarrow.csv.write_csv(_arrow_table(frame), buffer)
    insert(connection, table, frame.columns, "CSVWithNames", buffer.getbuffer(), TEXT_SETTINGS)


@transport("HTTP INSERT FORMAT JSONEachRow", "JSON", settings=TEXT_SETTINGS)
def write_polars_json(connection, frame, table):
    """Send the frame as one JSON object per row in the body of a POST request.

    Every row repeats all names, and the server parses every value again. JSON has no NaN or infinity, for which polars
    writes null. A float column with such values is therefore sent as strings, which the server parses as floats.
    """
    import polars as pl
    import polars.selectors as cs

    buffer = io.BytesIO()
    with phase("encode"):
        floats = frame.select(cs.float())
        odd = [column.name for column in floats if not column.is_finite().all()]
        frame.with_columns(cs.by_name(odd).cast(pl.String)).write_ndjson(buffer)
    insert(connection, table, frame.columns, "JSONEachRow", buffer.getbuffer(), TEXT_SETTINGS)


@transport("HTTP INSERT FORMAT JSONEachRow", "JSON", settings=TEXT_SETTINGS)
def write_pandas_json(connection, frame, table):
    """Send the frame as one JSON object per row in the body of a POST request.

    Every row repeats all names, and the server parses every value again. pandas would write 15 digits of a double, null
    for a NaN, and a time after a date. This transport therefore first turns floats and dates into strings, which the
    server parses correctly.
    """
    with phase("encode"):
        texts = {}
        for name, values in frame.items():
            if values.dtype in ("float64", "float32"):
                texts[name] = [repr(value) for value in values.tolist()]
            elif values.dtype.kind == "M":
                texts[name] = values.dt.strftime("%Y-%m-%d")
        body = frame.assign(**texts).to_json(None, orient="records", lines=True).encode()
    insert(connection, table, frame.columns, "JSONEachRow", body, TEXT_SETTINGS)
