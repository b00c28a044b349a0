"""DuckDB with Postgres attached as a database of its own: https://duckdb.org/docs/stable/core_extensions/postgres

Names of columns that only capital letters tell apart are one to DuckDB: it puts a number behind the second.
"""

from harness.registry import transport
from harness.transports.postgres.duckdb.client import attached
from harness.transports.postgres.sql import identifier, literal

connect = attached


@transport(
    "write",
    frame="polars",
    path="ATTACH, INSERT",
    payload="binary rows",
    requires=["polars", "pyarrow", "duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
    lossy={"changed": "fraction_into_int32 uint64"},
)
def write_polars_insert(connection, frame, table):
    """Insert the frame into the attached table with INSERT INTO ... SELECT, which DuckDB turns into a binary COPY.

    One connection, whatever the number of threads. DuckDB reads the frame where it lies, through Arrow, and casts every
    column to the table's type: it parses the text of a uuid itself, and cuts the time of day off a date.
    """
    connection.register("given", frame)
    connection.execute(f"INSERT INTO pg.{identifier(table)} BY NAME SELECT * FROM given")


@transport(
    "write",
    frame="pandas",
    path="ATTACH, INSERT",
    payload="binary rows",
    requires=["pandas", "duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
    lossy={"changed": "nan fraction_into_int32 float32_nan uint64"},
)
def write_pandas_insert(connection, frame, table):
    """Insert the frame into the attached table with INSERT INTO ... SELECT, which DuckDB turns into a binary COPY.

    As from polars, but DuckDB reads the columns of pandas itself, without Arrow. A floating NaN arrives as NULL.
    """
    connection.register("given", frame)
    connection.execute(f"INSERT INTO pg.{identifier(table)} BY NAME SELECT * FROM given")


@transport(
    "read",
    frame="polars",
    path="ATTACH, SELECT",
    payload="binary rows",
    requires=["polars", "pyarrow", "duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
    lossy={"changed": "padded_text name_case"},
)
def read_polars_scan(connection, table):
    """Read the attached table with DuckDB, over binary COPYs of page ranges, and hand it on to polars.

    DuckDB reads 1,000 pages (8 MB) a task, and large tables in parallel: each thread over a connection of its own, all
    under one exported snapshot. Up to 2,000 pages one connection reads. A uuid comes as its text, every other type as
    it is in the table.
    """
    return connection.sql(f"FROM pg.{identifier(table)}").pl()


@transport(
    "read",
    frame="pandas",
    path="ATTACH, SELECT",
    payload="binary rows",
    requires=["pandas", "duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
    lossy={"changed": "decimals padded_text name_case", "refused": "far_dates"},
)
def read_pandas_scan(connection, table):
    """Read the attached table with DuckDB, over binary COPYs of page ranges, and hand it on to pandas.

    As to polars: large tables in parallel, under one snapshot. A uuid comes as a Python object (dtype object), an
    integer column with nulls as float64.
    """
    return connection.sql(f"FROM pg.{identifier(table)}").df()


@transport(
    "read",
    frame="polars",
    path="ATTACH, SELECT",
    payload="binary rows",
    requires=["polars", "pyarrow", "duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
    lossy={"changed": "padded_text name_case"},
)
def read_polars_scan_small_tasks(connection, table):
    """Read the attached table with DuckDB, 100 pages a task, so that small tables are read in parallel as well.

    `pg_pages_per_task` is 100 here; by default it is 1,000, and a table of less than 16 MB has no second connection.
    """
    connection.execute("SET pg_pages_per_task = 100")
    return connection.sql(f"FROM pg.{identifier(table)}").pl()


@transport(
    "read",
    frame="polars",
    path="ATTACH, SELECT",
    payload="rows as text",
    requires=["polars", "pyarrow", "duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
    lossy={"changed": "far_dates name_case"},
)
def read_polars_scan_text_protocol(connection, table):
    """Read the attached table with DuckDB through a plain SELECT, with `pg_use_text_protocol` switched on.

    What servers without COPY are read with: the server prints every value, DuckDB parses it, and one connection reads
    all. A date before the year 1 loses its "BC". `pg_use_binary_copy`, which sounds like the switch for this, changes
    nothing in DuckDB 1.5.5.
    """
    connection.execute("SET pg_use_text_protocol = true")
    return connection.sql(f"FROM pg.{identifier(table)}").pl()


@transport(
    "read",
    frame="polars",
    path="postgres_query",
    payload="binary rows",
    requires=["polars", "pyarrow", "duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
    lossy={"changed": "padded_text", "refused": "name_case"},
)
def read_polars_postgres_query(connection, table):
    """Have the server run a query as it is written, over DuckDB's postgres_query, and hand the rows on to polars.

    For any SQL of the server's own. One binary COPY over one connection: DuckDB does not divide a query that
    it does not understand.
    """
    query = f"SELECT * FROM {identifier(table)}"
    return connection.sql(f"FROM postgres_query('pg', {literal(query)})").pl()


@transport(
    "read",
    frame="pandas",
    path="postgres_query",
    payload="binary rows",
    requires=["pandas", "duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
    lossy={"changed": "decimals padded_text", "refused": "far_dates name_case"},
)
def read_pandas_postgres_query(connection, table):
    """Have the server run a query as it is written, over DuckDB's postgres_query, and hand the rows on to pandas.

    One binary COPY over one connection. A uuid comes as a Python object (dtype object), an integer column with nulls
    as float64.
    """
    query = f"SELECT * FROM {identifier(table)}"
    return connection.sql(f"FROM postgres_query('pg', {literal(query)})").df()


@transport(
    "call",
    path="SELECT 1",
    payload="one value",
    requires=["duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
    origin="limit",
)
def call_select_1(connection):
    """Run `SELECT 1` to time an empty round trip of this client."""
    return connection.execute("FROM postgres_query('pg', 'SELECT 1')").fetchone()[0]
