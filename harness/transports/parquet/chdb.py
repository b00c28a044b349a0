"""chDB, the ClickHouse engine inside the process: https://clickhouse.com/docs/chdb"""

from contextlib import contextmanager

from harness.registry import transport

# TPC-H query 6's filter: about 1.9 % of lineitem's rows at every scale. ClickHouse reads 0.05 as a float, so the bounds
# become decimals of the columns' scale.
ROWS_OF_A_FILE = """
SELECT l_shipdate, l_discount, l_quantity
FROM file({file_name:String}, Parquet)
WHERE l_shipdate >= toDate32('1994-01-01') AND l_shipdate < toDate32('1995-01-01')
  AND l_discount BETWEEN toDecimal64('0.05', 2) AND toDecimal64('0.07', 2) AND l_quantity < 24
"""


@contextmanager
def connect(folder):
    """Yield a connection to an empty database whose files, including temporary ones, are in the folder."""
    import chdb

    connection = chdb.connect(folder)
    try:
        yield connection
    finally:
        connection.close()


def _count(connection, files, settings=""):
    """Return the number of matching rows in all files; UNION ALL counts a file given twice twice.

    Paths are query parameters. ClickHouse accepts 256 KB of query text, enough for about 900 files.
    """
    names = [f"file_{number}" for number in range(len(files))]
    branches = [ROWS_OF_A_FILE.replace("file_name", name) for name in names]
    query = f"SELECT count() FROM ({' UNION ALL '.join(branches)}) {settings}"
    return int(connection.query(query, "TSV", params=dict(zip(names, files, strict=True))).bytes())


@transport("file(), UNION ALL", "Parquet")
def scan(connection, files):
    """Count with SQL over file(), one branch of UNION ALL a file, with default settings.

    chDB maps local files into memory: storage_file_read_method is mmap in chDB and pread in a ClickHouse server. The
    pages of the three columns count as the process's file-backed memory, which the system can reclaim. A path with *, ?
    or { in it is read as a pattern.
    """
    return _count(connection, files)


@transport("file(), UNION ALL", "Parquet", settings={"storage_file_read_method": "pread"})
def scan_pread(connection, files):
    """Count with the same SQL, the files read with positional reads instead of mapped into memory.

    This is a ClickHouse server's default. Compared with `scan`, it shows what mapping the files costs and saves.
    """
    return _count(connection, files, settings="SETTINGS storage_file_read_method = 'pread'")
