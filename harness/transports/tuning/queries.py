"""The query that runs on downloaded files, and the function that writes a table to files before an upload."""

TOP = """
SELECT col_1, col_2, count(*) AS cnt FROM read_parquet($source)
GROUP BY col_1, col_2 ORDER BY cnt DESC, col_1, col_2 LIMIT 10
"""


def write_files(connection, source, folder, threads):
    """Copy a table into Parquet files in a new local folder, one per thread; return the number of rows."""
    database, new = ("'" + text.replace("'", "''") + "'" for text in (source, folder))
    connection.execute(f"SET threads = {int(threads)}")
    connection.execute(f"ATTACH OR REPLACE {database} AS given (READ_ONLY)")
    return connection.execute(f"COPY given.benchmark_input TO {new} (FORMAT parquet, PER_THREAD_OUTPUT)").fetchone()[0]
