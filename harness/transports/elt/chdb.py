"""chDB, the ClickHouse engine inside the process: https://clickhouse.com/docs/chdb"""

from contextlib import contextmanager

from harness.registry import transport

# Settings replace the options of DuckDB and Polars. Any share of malformed lines is allowed.
SETTINGS = """
SETTINGS schema_inference_mode = 'union', input_format_max_rows_to_read_for_schema_inference = 200,
  input_format_allow_errors_num = 1000000000, input_format_allow_errors_ratio = 1,
  engine_file_truncate_on_insert = 1, s3_truncate_on_insert = 1
"""


@contextmanager
def connect(folder, s3):
    """Yield a connection to an empty database whose files are in the folder, and the S3 server.

    `s3` is None, or has endpoint (http(s)://host:port), region, access_key and secret_key.
    """
    import chdb

    connection = chdb.connect(folder)
    try:
        yield connection, s3
    finally:
        connection.close()


def _table(s3, place, file_format):
    """Return the table function of a local path or an s3:// address, with every string quoted as SQL."""

    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    if not place.startswith("s3://"):
        return f"file({quoted(place)}, {file_format})"
    url = quoted(f"{s3['endpoint']}/{place.removeprefix('s3://')}")
    return f"s3({url}, {quoted(s3['access_key'])}, {quoted(s3['secret_key'])}, {file_format})"


@transport("file() or s3() -> INSERT INTO FUNCTION", "CSV to Parquet")
def transform(session, source, destination):
    """Insert everything that file() or s3() finds below the source into one Parquet file.

    input_format_allow_errors_ratio skips malformed lines. schema_inference_mode = union combines the columns of all
    files, inferred from their first 200 lines.
    """
    connection, s3 = session
    connection.query(
        f"INSERT INTO FUNCTION {_table(s3, destination, 'Parquet')} "
        f"SELECT *, _path AS filename FROM {_table(s3, source + '/**/*.csv', 'CSVWithNames')} {SETTINGS}"
    )
