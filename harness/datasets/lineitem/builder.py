"""The child process that builds one Parquet file of lineitem with DuckDB and exits, so that its memory is freed.

The job arrives as one line of JSON on standard input, which stays open as long as the parent wants the file. The answer
is one line of JSON on standard output: facts about a generated part's rows, nothing for a joined file.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from harness.model import Facts, first_line

if TYPE_CHECKING:
    import duckdb

_MEMORY_LIMIT = "3GB"  # DuckDB's limit; the whole process peaks at 1.8 GB for a part of scale factor 1

# The rows that every engine of a scan counts: the predicates of TPC-H's query 6 with its validation parameters
# (specification, 2.4.6). They match about 1.9 % of the rows at every scale factor.
_MATCHES = """
    count(*) FILTER (
        l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
        AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24
    )"""
# The first 8 bytes of each row's MD5 as text (a little-endian number), summed modulo 2^64. The sum does not depend on
# the row order or the Parquet layout. Two files together have the sum of their numbers.
_CONTENT = """
    (coalesce(sum((md5_number(concat_ws('|', *COLUMNS(*))) & 18446744073709551615::UHUGEINT)::UBIGINT), 0)
        % 18446744073709551616::HUGEINT)::UBIGINT"""


def main() -> None:
    """Do one job in its folder."""
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    import duckdb

    try:
        os.chdir(job["folder"])  # file names without a path need no quoting, whatever the folder's name
        answer = _generate(**job["generate"]) if "generate" in job else _join(**job["join"])
    except (duckdb.Error, OSError) as error:
        answer = {"error": first_line(error)}
    sys.stdout.write(json.dumps(answer) + "\n")


def _leave_with_the_parent() -> None:
    """Exit when the parent is gone or no longer wants a file: standard input then closes."""
    sys.stdin.read()
    os._exit(1)


def _connect(extensions: str = "") -> duckdb.DuckDBPyConnection:
    """Open an in-memory database that never spills, with one thread: a writer's memory grows with the threads."""
    import duckdb

    config: Facts = {
        "threads": 1,
        "memory_limit": _MEMORY_LIMIT,
        "temp_directory": "",
        "extension_directory": extensions,
    }
    connection = duckdb.connect(config=config)
    connection.execute("SET enable_progress_bar = false")  # it would go to standard output, into the answer
    return connection


def _generate(scale_factor: float, parts: int, part: int, name: str, row_group_rows: int) -> Facts:
    """Generate one part and write it; return its rows, matches and content according to the generator's own table."""
    import duckdb_extensions

    # The wheel's extension is installed into a separate folder: neither the home directory nor a network is needed.
    with (
        TemporaryDirectory(dir=".", suffix=f".partial-{os.getpid()}") as extensions,
        _connect(extensions) as connection,
    ):
        duckdb_extensions.import_extension("tpch", con=connection)
        connection.execute("LOAD tpch")
        connection.execute(f"CALL dbgen(sf = {scale_factor}, children = {parts}, step = {part})")
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            if table != "lineitem":
                connection.execute(f"DROP TABLE {table}")
        connection.execute("RESET threads")  # counting needs little memory, and takes a third of the generation time
        known = connection.execute(f"SELECT count(*), {_MATCHES}, {_CONTENT} FROM lineitem").fetchone()
        connection.execute("SET threads = 1")
        _copy(connection, "lineitem", name, row_group_rows)
    assert known is not None
    return dict(zip(("rows", "matches", "content"), known, strict=True))


def _join(sources: Sequence[str], name: str, row_group_rows: int) -> Facts:
    """Copy the rows of all sources, in order, into one file, holding only a few row groups in memory."""
    files = ", ".join(f"'{source}'" for source in sources)
    with _connect() as connection:
        _copy(connection, f"(FROM read_parquet([{files}]))", name, row_group_rows)
    return {}


def _copy(connection: duckdb.DuckDBPyConnection, rows: str, name: str, row_group_rows: int) -> None:
    options = f"FORMAT parquet, ROW_GROUP_SIZE {row_group_rows}, USE_TMP_FILE false"
    connection.execute(f"COPY {rows} TO '{name}' ({options})")


if __name__ == "__main__":
    main()
