"""Daft on Ray: https://docs.daft.ai/en/stable/distributed/ray/"""

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

from harness.registry import Unsupported, transport
from harness.transports.daft import daft_on_ray, done_by_parts, in_row_groups
from harness.transports.parts import row_groups
from harness.transports.postgres.daft.client import copy_sink, read_by_sqlalchemy
from harness.transports.postgres.partitions import (
    copy_part_once,
    ledger_of,
    one_moment,
    part_queries,
    read_part,
    staging_of,
)

REQUIRES = ["daft", "ray", "pyarrow", "psycopg"]


@contextmanager
def connect(uri, workers):
    """Yield the database's addresses, as seen by this process and by Daft's workers on Ray."""
    with daft_on_ray(workers, ["pyarrow", "psycopg", "pgpq", "sqlalchemy", "adbc-driver-postgresql"]):
        yield SimpleNamespace(uri=uri, of_workers=workers.uri, number=workers.number)


@transport("COPY FROM STDIN (FORMAT binary)", "binary rows", needs=["ray"])
def load_copy_sink_ray(connection, source, table):
    """Let Daft on Ray read a Parquet file and pass it to our sink, which COPYs each micropartition.

    Each row group is a task, because a whole file would be one task for one worker. If a worker dies after a commit,
    Daft repeats its task, which duplicates the rows.
    """
    in_row_groups(source).write_sink(copy_sink(connection.of_workers, table))


@transport("COPY FROM STDIN (FORMAT binary), ledger", "binary rows", needs=["ray"])
def load_copy_once_ray(connection, source, table):
    """Have Daft's workers COPY one row group each, once: the rows and a ledger entry are one transaction.

    Daft repeats the tasks of a worker that died. A repeated task that is in the ledger does nothing.
    """
    with ledger_of(connection.uri, table) as ledger:
        copied = partial(copy_part_once, connection.of_workers, table, ledger, source)
        done_by_parts(copied, row_groups(source))


@transport("COPY FROM STDIN (FORMAT binary), ledger, staging table", "binary rows", needs=["ray"])
def load_copy_staged_ray(connection, source, table):
    """Have Daft's workers COPY each row group once into a staging table that replaces the table at the end.

    All rows become visible at once, or none if anything fails.
    """
    with staging_of(connection.uri, table) as staging, ledger_of(connection.uri, table) as ledger:
        copied = partial(copy_part_once, connection.of_workers, staging, ledger, source)
        done_by_parts(copied, row_groups(source))


@transport("SELECT, parts", "text", requires=["pyarrow", "sqlglot"], needs=["ray"])
def unload_read_sql_ray(connection, table, destination):
    """Let Daft on Ray read a table with read_sql in ranges of an integer column, and write each range as Parquet.

    Daft reads over SQLAlchemy connections. With only an address, Daft 0.7.26 would need psycopg2 for ranges. There is
    one range per worker, in equal steps from the minimum to the maximum. Each worker reads at a different time. If a
    worker dies, Daft repeats its range, which may leave a second file.
    """
    divided = {"partition_col": _whole_numbers(connection.uri, table), "num_partitions": connection.number}
    read_by_sqlalchemy(connection.uri, table, connection.of_workers, **divided).write_parquet(destination)


def _whole_numbers(uri, table):
    """Return the first integer column without nulls. Raises Unsupported if the table has none.

    The column has at most 32 bits, because Daft divides in floating point. Its name needs no quotes, because Daft adds
    none.
    """
    import psycopg

    asked = (
        "SELECT attname FROM pg_attribute WHERE attrelid = quote_ident(%s)::regclass AND attnum > 0 AND attnotnull "
        "AND NOT attisdropped AND atttypid IN ('int2'::regtype, 'int4'::regtype) AND quote_ident(attname) = attname "
        "ORDER BY attnum LIMIT 1"
    )
    with psycopg.connect(uri) as connection:
        found = connection.execute(asked, [table]).fetchone()
    if found is None:
        raise Unsupported(f"the table {table} has no column of whole numbers without nulls, which Daft could divide")
    return found[0]


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows", needs=["ray"])
def unload_by_parts_ray(connection, table, destination):
    """Have Daft's workers each read some pages of the table with ADBC and write them as Parquet.

    Each part is read at a different time: rows that change meanwhile can be in two parts or in none.
    """
    _unloaded(connection, table, destination, None)


@transport("COPY TO STDOUT (FORMAT binary), snapshot", "binary rows", needs=["ray"])
def unload_one_moment_ray(connection, table, destination):
    """Have Daft's workers each read pages of the table with ADBC, all from one snapshot, and write them as Parquet.

    This process holds the transaction whose snapshot the workers read.
    """
    with one_moment(connection.uri) as snapshot:
        _unloaded(connection, table, destination, snapshot)


def _unloaded(connection, table, destination, snapshot):
    uri, queries = connection.of_workers, part_queries(connection.uri, table)

    def unloaded(part):
        return read_part(uri, queries[part], snapshot, destination, str(part))

    done_by_parts(unloaded, range(len(queries)))
