"""The query that is run on downloaded files, and the table that is written to files before an upload."""

TOP = """
SELECT col_1, col_2, count(*) AS cnt FROM read_parquet($source)
GROUP BY col_1, col_2 ORDER BY cnt DESC, col_1, col_2 LIMIT 10
"""


def write_files(connection, source, folder, threads):
    """Copy a table into Parquet files of a new local folder, one a thread; return its rows."""
    database, new = ("'" + text.replace("'", "''") + "'" for text in (source, folder))
    connection.execute(f"SET threads = {int(threads)}")
    connection.execute(f"ATTACH OR REPLACE {database} AS given (READ_ONLY)")
    return connection.execute(f"COPY given.benchmark_input TO {new} (FORMAT parquet, PER_THREAD_OUTPUT)").fetchone()[0]
