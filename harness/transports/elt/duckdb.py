"""DuckDB, an analytical database inside the process: https://duckdb.org/docs/stable/data/csv/overview"""

from harness.registry import transport
from harness.transports.duckdb import in_memory

connect = in_memory


@transport("read_csv -> COPY TO", "CSV to Parquet", published="DuckDB")
def transform(connection, source, destination):
    """Copy everything that read_csv finds below the source into one Parquet file, with the published job's options.

    ignore_errors skips malformed lines. union_by_name combines files with different columns. filename records each
    row's file. DuckDB infers a file's types from its first 200 lines.
    """
    connection.execute(
        "COPY (SELECT * FROM read_csv($source, ignore_errors = true, filename = true, union_by_name = true, "
        "sample_size = 200)) TO $destination (FORMAT parquet)",
        {"source": f"{source}/**/*.csv", "destination": destination},
    )
