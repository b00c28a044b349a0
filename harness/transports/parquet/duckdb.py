"""DuckDB, an analytical database inside the process: https://duckdb.org/docs/stable/data/parquet/overview"""

from contextlib import contextmanager

from harness.registry import transport

# TPC-H query 6's filter: about 1.9 % of lineitem's rows at every scale. DuckDB reads 0.05 as a decimal.
ROWS_OF_A_FILE = """
SELECT l_shipdate, l_discount, l_quantity
FROM read_parquet(?)
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
"""


@contextmanager
def connect(folder):
    """Yield a connection to an empty in-memory database that spills to the folder."""
    import duckdb

    with duckdb.connect(config={"temp_directory": folder}) as connection:
        yield connection


def _count(connection, files):
    """Return the number of matching rows in all files; UNION ALL counts a file given twice twice."""
    query = f"SELECT count(*) FROM ({' UNION ALL '.join([ROWS_OF_A_FILE] * len(files))})"
    return connection.execute(query, files).fetchone()[0]


@transport("read_parquet, UNION ALL", "Parquet", published="DuckDB")
def scan(connection, files):
    """Count with SQL over read_parquet, one branch of UNION ALL a file, with default settings.

    DuckDB reads only the three columns, with positional reads into its own buffers. Threads share a file by row groups,
    so a file of one row group keeps one thread busy. A path with *, ? or [ in it is read as a pattern.
    """
    return _count(connection, files)


@transport("read_parquet, UNION ALL", "Parquet", settings={"memory_limit": "64MB"})
def scan_memory_limit(connection, files):
    """Count with SQL over read_parquet under a memory limit of 64 MB for all of DuckDB.

    The default limit is 80 % of the machine's memory. 64 MB is a twentieth of the published benchmark's figure for one
    file of 140 GB. It was enough for DuckDB 1.5 in every trial, up to 128 threads or 6 million rows in one row group.
    The limit does not cover all of the process's memory: 200 MB instead of 330 for a file of 9,000 row groups. A scan
    has nothing to spill, so exceeding the limit is an error.
    """
    connection.execute("SET memory_limit = '64MB'")
    return _count(connection, files)
