"""Dask into and out of Postgres: https://docs.dask.org/en/stable/dataframe-sql.html

Files have one path, but the database has two addresses, except where noted: one for this process and one for the
workers.
"""

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

from harness.registry import Unsupported, transport
from harness.transports.dask import client_of, done
from harness.transports.parts import row_groups
from harness.transports.postgres.partitions import (
    copy_part,
    copy_part_once,
    ledger_of,
    one_moment,
    part_queries,
    read_part,
    staging_of,
)
from harness.transports.postgres.sql import identifier
from harness.transports.postgres.to_sql import insert_by_copy, url_of, uuid_types

CHUNK = "32 MiB"  # Dask's estimate of a partition's size in memory


@contextmanager
def connect(uri, workers):
    """Yield a client of the scheduler, and the database's addresses, as seen by this process and by workers."""
    modules = [
        "adbc_driver_postgresql.dbapi",
        "dask.dataframe",
        "pandas",
        "pgpq",
        "psycopg",
        "pyarrow.parquet",
        "sqlalchemy",
    ]
    with client_of(workers, modules) as client:
        yield SimpleNamespace(client=client, uri=uri, workers_uri=workers.uri)


@transport("dask.dataframe.to_sql", "rows", requires=["psycopg"], needs=["dask"])
def load_to_sql(connection, source, table):
    """Append the partitions of a Dask frame with to_sql(parallel=True): pandas' to_sql, one INSERT a row, on workers.

    A partition is a row group. By default Dask would put up to 256 MiB into one partition, for one worker. Each
    partition commits separately. If a worker dies after its commit, its partition is duplicated, and if one partition
    fails the others stay. SQLAlchemy would cast every string to VARCHAR, so the transport declares the uuid columns.
    """
    with _engine(connection.uri) as engine:
        types = uuid_types(engine, table)
    _append(source, table, connection.workers_uri, dtype=types)


@transport("dask.dataframe.to_sql", "delimited text", requires=["psycopg"], needs=["dask"])
def load_to_sql_copy(connection, source, table):
    """Append the partitions of a Dask frame with to_sql(parallel=True) and pandas' COPY recipe as method.

    csv.writer turns rows of Python values into CSV, and the server parses every value again. An empty string arrives as
    NULL. A partition is a row group and commits separately, as in `load_to_sql`.
    """
    _append(source, table, connection.workers_uri, method=insert_by_copy)


def _append(source, table, uri, **options):
    """Append a Parquet file to a table with to_sql, one partition per row group."""
    import dask.dataframe as dd

    frame = dd.read_parquet(source, split_row_groups=True)
    frame.to_sql(table, url_of(uri), if_exists="append", index=False, parallel=True, **options)


@transport("client.map, COPY FROM STDIN", "binary", needs=["dask"])
def load_copy(connection, source, table):
    """COPY each row group of the file on a worker, from Arrow, in a separate transaction.

    If a worker dies before its result arrives, Dask repeats its work and duplicates the row group. Inserted row groups
    stay if another one fails.
    """
    done(connection.client, partial(copy_part, connection.workers_uri, table, source), row_groups(source))


@transport("client.map, COPY FROM STDIN", "binary", needs=["dask"])
def load_copy_once(connection, source, table):
    """COPY each row group exactly once, even if workers die: a ledger in the same transaction records it.

    Inserted row groups stay if another one fails, and other connections can read them during the load.
    """
    with ledger_of(connection.uri, table) as ledger:
        copied = partial(copy_part_once, connection.workers_uri, table, ledger, source)
        done(connection.client, copied, row_groups(source))


@transport("client.map, COPY FROM STDIN", "binary", needs=["dask"])
def load_copy_staged(connection, source, table):
    """COPY each row group exactly once into a staging table, which replaces the table at the end: all or nothing.

    No row is visible before the end, and none is inserted if a row group fails.
    """
    with staging_of(connection.uri, table) as staging, ledger_of(connection.uri, table) as ledger:
        copied = partial(copy_part_once, connection.workers_uri, staging, ledger, source)
        done(connection.client, copied, row_groups(source))


@transport("dask.dataframe.read_sql_table, to_parquet", "rows", requires=["psycopg", "pyarrow.parquet"], needs=["dask"])
def unload_read_sql_table(connection, table, destination):
    """Read the table with read_sql_table and write its partitions with to_parquet.

    Partitions are equal ranges of an integer or timestamp column without nulls, if possible the primary key's first.
    Without an index on that column, the server reads the whole table for each partition. Partitions are read at
    different times. Dask turns values other than numbers and timestamps into strings, so the transport parses dates
    into timestamps. Integers next to nulls become floats. The driver reads the table's columns at the workers' address.
    Raises Unsupported without such a column; `unload_read_sql_query` divides any table.
    """
    import dask.dataframe as dd

    columns, url = _columns(connection.workers_uri, table), url_of(connection.workers_uri)
    frame = dd.read_sql_table(table, url, _dividing(columns), bytes_per_chunk=CHUNK, parse_dates=_dates(columns))
    frame.to_parquet(destination)


@transport("dask.dataframe.read_sql_query, to_parquet", "rows", requires=["psycopg", "pyarrow.parquet"], needs=["dask"])
def unload_read_sql_query(connection, table, destination):
    """Read the table with read_sql_query in ranges of its pages, and write its partitions with to_parquet.

    Dask divides by ctid, a row's location: every table has it, and the server reads each page once. A partition has as
    many pages as a row group (16 MB). Partitions are read at different times, and a row that is updated meanwhile
    moves. Values change as in `unload_read_sql_table`.
    """
    import dask.dataframe as dd
    import sqlalchemy as sa

    columns, ctid = _columns(connection.uri, table), sa.column("ctid", _tid())
    with _engine(connection.uri) as engine:
        divisions = _divisions(engine, table)
    query, url = sa.select(*columns, ctid), url_of(connection.workers_uri)
    frame = dd.read_sql_query(query, url, ctid, divisions=divisions, parse_dates=_dates(columns))
    frame.to_parquet(destination, write_index=False)


@transport("client.map, COPY TO STDOUT", "binary", needs=["dask"])
def unload_by_parts(connection, table, destination):
    """Read ranges of the table's pages on the workers with ADBC, at different times, into one file each.

    Some workers see concurrent writes and others do not.
    """
    _unload(connection, table, None, destination)


@transport("client.map, COPY TO STDOUT", "binary", needs=["dask"])
def unload_one_moment(connection, table, destination):
    """Read ranges of the table's pages on the workers with ADBC, all from one snapshot, into one file each.

    This process keeps the snapshot open until all are read. Until then the server removes no row that the snapshot
    sees.
    """
    with one_moment(connection.uri) as snapshot:
        _unload(connection, table, snapshot, destination)


def _unload(connection, table, snapshot, destination):
    uri, queries = connection.workers_uri, part_queries(connection.uri, table)

    def read(number, query):
        return read_part(uri, query, snapshot, destination, f"part_{number:05}")

    done(connection.client, read, range(len(queries)), queries)


@contextmanager
def _engine(uri):
    import sqlalchemy as sa

    engine = sa.create_engine(url_of(uri))
    try:
        yield engine
    finally:
        engine.dispose()


def _columns(uri, table):
    """Return a table's columns as SQLAlchemy reports them."""
    import sqlalchemy as sa

    with _engine(uri) as engine:
        return sa.Table(table, sa.MetaData(), autoload_with=engine).columns


def _dates(columns):
    """Return the names of the date columns."""
    import sqlalchemy as sa

    return [column.name for column in columns if isinstance(column.type, sa.Date)]


def _dividing(columns):
    """Return the name of a column whose range Dask can divide without losing a row. Raises Unsupported."""
    import sqlalchemy as sa

    divisible = (sa.Integer, sa.DateTime)
    suit = [column for column in columns if isinstance(column.type, divisible) and not column.nullable]
    if not suit:
        raise Unsupported("no column of whole numbers or timestamps without nulls, by which to divide the table")
    return min(suit, key=lambda column: not column.primary_key).name


def _divisions(engine, table):
    """Return the ctids at which ranges of 2,000 pages begin, and one beyond the largest possible table."""
    import sqlalchemy as sa

    asked = "SELECT pg_relation_size(CAST(:table AS regclass)) / current_setting('block_size')::int"
    with engine.connect() as server:
        pages = server.execute(sa.text(asked.replace("::", "\\:\\:")), {"table": identifier(table)}).scalar_one()
    return [f"({page},0)" for page in range(0, max(pages, 1), 2_000)] + ["(4294967295,0)"]


def _tid():
    """Return the type of ctid, which SQLAlchemy lacks: without a type it would cast strings to VARCHAR."""
    import sqlalchemy as sa

    class Tid(sa.types.UserDefinedType):
        cache_ok = True

    return Tid()
