"""DuckDB with Postgres attached as a database: https://duckdb.org/docs/stable/core_extensions/postgres

DuckDB treats column names that differ only in case as equal: it appends a number to the second.
"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.postgres.sql import identifier, literal


@contextmanager
def connect(uri):
    """Yield an in-memory DuckDB with Postgres attached as `pg`, using the schema that the server searches first.

    The extension comes from its wheel, so nothing is downloaded. DuckDB reads Postgres' catalogue at first use and
    caches it. It does not notice if another connection recreates a table with other columns.
    """
    import duckdb
    import duckdb_extensions

    with duckdb.connect() as connection:
        duckdb_extensions.import_extension("postgres_scanner", con=connection)
        connection.execute("LOAD postgres_scanner")
        connection.execute(f"ATTACH {literal(uri)} AS pg (TYPE postgres)")
        # DuckDB uses the schema "public", whatever the server's search path.
        ((schema,),) = connection.execute("FROM postgres_query('pg', 'SELECT current_schema()')").fetchall()
        connection.execute("DETACH pg")
        connection.execute(f"ATTACH {literal(uri)} AS pg (TYPE postgres, SCHEMA {literal(schema)})")
        yield connection


@transport("ATTACH, INSERT", "binary rows", requires=["pyarrow", "duckdb_extension_postgres_scanner"])
def write_polars_insert(connection, frame, table):
    """Insert the frame into the attached table with INSERT INTO ... SELECT, which DuckDB turns into a binary COPY.

    DuckDB uses one connection, whatever its number of threads. It reads the frame in place, through Arrow, and casts
    every column to the table's type. It parses uuid strings itself and drops the time of day of a date.
    """
    connection.register("given", frame)
    connection.execute(f"INSERT INTO pg.{identifier(table)} BY NAME SELECT * FROM given")


@transport("ATTACH, INSERT", "binary rows", requires=["duckdb_extension_postgres_scanner"])
def write_pandas_insert(connection, frame, table):
    """Insert the frame into the attached table with INSERT INTO ... SELECT, which DuckDB turns into a binary COPY.

    Works like write_polars_insert, but DuckDB reads the pandas columns itself, without Arrow. NaN in a float column
    arrives as NULL.
    """
    connection.register("given", frame)
    connection.execute(f"INSERT INTO pg.{identifier(table)} BY NAME SELECT * FROM given")


@transport("ATTACH, SELECT", "binary rows", requires=["pyarrow", "duckdb_extension_postgres_scanner"])
def read_polars_scan(connection, table):
    """Read the attached table with DuckDB, over binary COPYs of page ranges, and pass it to polars.

    DuckDB reads 1,000 pages (8 MB) per task. It reads tables of more than 2,000 pages in parallel: each thread uses its
    own connection, all under one exported snapshot. A uuid arrives as its string, every other value with the table's
    type.
    """
    return connection.sql(f"FROM pg.{identifier(table)}").pl()


@transport("ATTACH, SELECT", "binary rows", requires=["duckdb_extension_postgres_scanner"])
def read_pandas_scan(connection, table):
    """Read the attached table with DuckDB, over binary COPYs of page ranges, and pass it to pandas.

    Like read_polars_scan, it reads large tables in parallel, under one snapshot. A uuid arrives as a Python object
    (dtype object), an integer column with nulls as float64.
    """
    return connection.sql(f"FROM pg.{identifier(table)}").df()


@transport("ATTACH, SELECT", "binary rows", requires=["pyarrow", "duckdb_extension_postgres_scanner"])
def read_polars_scan_small_tasks(connection, table):
    """Read the attached table with DuckDB, 100 pages a task, so that it reads small tables in parallel as well.

    `pg_pages_per_task` is 100 here. With the default of 1,000, a table of less than 16 MB uses only one connection.
    """
    connection.execute("SET pg_pages_per_task = 100")
    return connection.sql(f"FROM pg.{identifier(table)}").pl()


@transport("ATTACH, SELECT", "rows as text", requires=["pyarrow", "duckdb_extension_postgres_scanner"])
def read_polars_scan_text_protocol(connection, table):
    """Read the attached table with DuckDB through a plain SELECT, with `pg_use_text_protocol` switched on.

    Use it for servers without COPY: the server prints every value, DuckDB parses it, and one connection reads
    everything. A date before the year 1 loses its "BC". `pg_use_binary_copy` sounds like the switch for this, but
    changes nothing in DuckDB 1.5.5.
    """
    connection.execute("SET pg_use_text_protocol = true")
    return connection.sql(f"FROM pg.{identifier(table)}").pl()


@transport("postgres_query", "binary rows", requires=["pyarrow", "duckdb_extension_postgres_scanner"])
def read_polars_postgres_query(connection, table):
    """Have the server run an unchanged query through DuckDB's postgres_query, and pass the rows to polars.

    Use it for any SQL of the server. It runs one binary COPY over one connection: DuckDB does not divide a query that
    it does not parse.
    """
    query = f"SELECT * FROM {identifier(table)}"
    return connection.sql(f"FROM postgres_query('pg', {literal(query)})").pl()


@transport("postgres_query", "binary rows", requires=["duckdb_extension_postgres_scanner"])
def read_pandas_postgres_query(connection, table):
    """Have the server run an unchanged query through DuckDB's postgres_query, and pass the rows to pandas.

    It runs one binary COPY over one connection. A uuid arrives as a Python object (dtype object), an integer column
    with nulls as float64.
    """
    query = f"SELECT * FROM {identifier(table)}"
    return connection.sql(f"FROM postgres_query('pg', {literal(query)})").df()


@transport("SELECT 1", "one value", requires=["duckdb_extension_postgres_scanner"], origin="limit")
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    return connection.execute("FROM postgres_query('pg', 'SELECT 1')").fetchone()[0]


@transport("ATTACH, INSERT FROM read_parquet", "binary rows", requires=["duckdb_extension_postgres_scanner"])
def load_insert_file(connection, source, table):
    """Insert a Parquet file into the attached table with INSERT INTO ... FROM read_parquet, as one binary COPY.

    DuckDB itself reads, casts every column to the table's type and sends. It parses uuid strings. The load is one
    transaction: if it is interrupted, no row stays.
    """
    connection.execute(f"INSERT INTO pg.{identifier(table)} BY NAME FROM read_parquet({literal(source)})")


@transport("ATTACH, COPY TO", "binary rows", requires=["duckdb_extension_postgres_scanner"])
def unload_copy(connection, table, destination):
    """Copy the attached table into a Parquet file with COPY ... TO, over binary COPYs of page ranges.

    Each thread reads over its own connection, all under one exported snapshot. A table has no order, so
    preserve_insertion_order is off: a thread writes each row group as soon as it is complete. With it on, memory grew
    with the table. Dictionaries are off, because they turned -0.0 into 0.0: the file is a third larger, but written
    faster. A uuid arrives as 16 bytes.
    """
    path = literal(f"{destination}/rows.parquet")
    connection.execute("SET preserve_insertion_order = false")
    # A dictionary merges -0.0 and 0.0: DuckDB 1.5.5, https://github.com/duckdb/duckdb/issues/25781
    connection.execute(f"COPY pg.{identifier(table)} TO {path} (FORMAT parquet, DICTIONARY_SIZE_LIMIT 0)")
