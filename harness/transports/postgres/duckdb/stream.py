"""DuckDB between Parquet files and an attached Postgres: https://duckdb.org/docs/stable/core_extensions/postgres"""

from harness.registry import transport
from harness.transports.postgres.duckdb.client import attached
from harness.transports.postgres.sql import identifier, literal

connect = attached


@transport(
    "load",
    path="ATTACH, INSERT FROM read_parquet",
    payload="binary rows",
    requires=["duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
)
def load_insert_file(connection, source, table):
    """Insert a Parquet file into the attached table with INSERT INTO ... FROM read_parquet, as one binary COPY.

    DuckDB reads, casts every column to the table's type and sends, all inside itself: it parses the text of a uuid.
    One transaction: ended half way, it leaves no row.
    """
    connection.execute(f"INSERT INTO pg.{identifier(table)} BY NAME FROM read_parquet({literal(source)})")


@transport(
    "unload",
    path="ATTACH, COPY TO",
    payload="binary rows",
    requires=["duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
)
def unload_copy(connection, table, destination):
    """Copy the attached table into a Parquet file with COPY ... TO, over binary COPYs of page ranges.

    Each thread reads over a connection of its own, all under one exported snapshot: the rows of one moment. Without
    preserve_insertion_order (a table has no order) a thread writes a row group when it has one; with it the memory grew
    with the table. Without dictionaries, in which -0.0 became 0.0, the file is a third larger, but sooner written. A
    uuid comes as 16 bytes.
    """
    path = literal(f"{destination}/rows.parquet")
    connection.execute("SET preserve_insertion_order = false")
    # A dictionary takes -0.0 and 0.0 for one value: DuckDB 1.5.5, https://github.com/duckdb/duckdb/issues/25781
    connection.execute(f"COPY pg.{identifier(table)} TO {path} (FORMAT parquet, DICTIONARY_SIZE_LIMIT 0)")
