"""DuckDB, an analytical database inside the process: https://duckdb.org/docs/stable/guides/performance/overview"""

from harness.registry import transport
from harness.transports.duckdb import in_memory

connect = in_memory

TOP = """
SELECT col_1, col_2, count(*) AS cnt FROM {relation}
GROUP BY col_1, col_2 ORDER BY cnt DESC, col_1, col_2 LIMIT 10
"""


def _quoted(text):
    return "'" + text.replace("'", "''") + "'"


def _relation(connection, source):
    """Return the FROM clause: the table in a database file, or all files of a pattern, local or on S3."""
    if not source.endswith(".duckdb"):
        return f"read_parquet({_quoted(source)})"
    connection.execute(f"ATTACH OR REPLACE {_quoted(source)} AS given (READ_ONLY)")
    return "given.benchmark_input"


@transport("GROUP BY", "table, Parquet files", operation="job", origin="published")
def group_by(connection, source, threads):
    """Return the ten largest groups of two columns, with this many threads: the published query.

    Groups of equal size are ordered by name, which the published query leaves open.
    """
    connection.execute(f"SET threads = {int(threads)}")
    return [list(row) for row in connection.execute(TOP.format(relation=_relation(connection, source))).fetchall()]


@transport("sum of a function", "table, Parquet files", operation="job", origin="published")
def jaro_winkler(connection, source, threads):
    """Return the sum of the Jaro-Winkler similarities of two columns, with this many threads: limited by the CPU."""
    connection.execute(f"SET threads = {int(threads)}")
    relation = _relation(connection, source)
    (total,) = connection.execute(f"SELECT sum(jaro_winkler_similarity(col_1, col_2)) FROM {relation}").fetchone()
    return total


def _alone(source, threads):
    """Run the query in a separate instance, so that it finds nothing in memory that another query read."""
    import duckdb

    with duckdb.connect() as own:
        return group_by(own, source, threads)


@transport("queries side by side", "Parquet files", operation="job", origin="published")
def side_by_side(connection, source, queries, threads):
    """Run the group-by query this many times in parallel, each with an equal share of the threads, at least one."""
    from concurrent.futures import ThreadPoolExecutor

    each = max(1, int(threads) // int(queries))
    with ThreadPoolExecutor(int(queries)) as pool:
        return list(pool.map(lambda _: _alone(source, each), range(int(queries))))


@transport("queries in a row", "Parquet files", operation="job", origin="published")
def in_a_row(connection, source, queries, threads):
    """Run the group-by query this many times one after the other, each with all threads."""
    return [_alone(source, threads) for _ in range(int(queries))]


def _create(connection, source, database, options):
    """Create a table from Parquet files in a new database file, and time its two steps."""
    import time

    started = time.perf_counter()
    connection.execute(f"ATTACH {_quoted(database)} AS made {options}")
    (rows,) = connection.execute(
        f"CREATE TABLE made.benchmark_input AS SELECT * FROM {_relation(connection, source)}"
    ).fetchone()
    created = time.perf_counter()
    connection.execute("CHECKPOINT made")
    ended = time.perf_counter()
    connection.execute("DETACH made")
    return {"answer": rows, "details": {"ctas_seconds": created - started, "checkpoint_seconds": ended - created}}


@transport(
    "CREATE TABLE AS, CHECKPOINT",
    "Parquet files to database file",
    operation="job",
    settings={"RECOVERY_MODE": "no_wal_writes"},
    published="CREATE TABLE AS and CHECKPOINT without a write-ahead log",
)
def create_table(connection, source, database):
    """Create a table from Parquet files in a new database file without a write-ahead log, as published.

    With RECOVERY_MODE no_wal_writes a crash loses the interrupted work. CREATE TABLE AS writes full row groups to the
    file. CHECKPOINT writes the rest and waits until everything is on disk.
    """
    return _create(connection, source, database, "(RECOVERY_MODE no_wal_writes)")


@transport("CREATE TABLE AS, CHECKPOINT", "Parquet files to database file", operation="job")
def create_table_with_wal(connection, source, database):
    """Create a table from Parquet files in a new database file with DuckDB's defaults, and checkpoint it."""
    return _create(connection, source, database, "")


@transport("COPY TO s3://", "table to Parquet files", operation="job", published="DuckDB COPY straight to S3")
def copy_to_s3(connection, source, destination, threads):
    """Copy a table straight to S3, each of this many threads into a separate Parquet file; return the row count."""
    connection.execute(f"SET threads = {int(threads)}")
    (rows,) = connection.execute(
        f"COPY (FROM {_relation(connection, source)}) TO {_quoted(destination)} (FORMAT parquet, PER_THREAD_OUTPUT)"
    ).fetchone()
    return rows
