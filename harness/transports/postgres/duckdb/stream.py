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

    DuckDB reads, casts every column to the table's type and sends, all inside itself.
    """
    connection.execute(f"INSERT INTO pg.{identifier(table)} BY NAME FROM read_parquet({literal(source)})")


@transport(
    "unload",
    path="ATTACH, COPY TO",
    payload="binary rows",
    requires=["duckdb", "duckdb_extensions", "duckdb_extension_postgres_scanner"],
)
def unload_copy(connection, table, destination):
    """Copy the attached table into a Parquet file with COPY ... TO, over binary COPYs of page ranges."""
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"COPY pg.{identifier(table)} TO {literal(f'{destination}/rows.parquet')} (FORMAT parquet)")
