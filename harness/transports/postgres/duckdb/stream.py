"""DuckDB between Parquet files and an attached Postgres: https://duckdb.org/docs/stable/core_extensions/postgres"""

from harness.registry import transport
from harness.transports.postgres.duckdb.client import attached
from harness.transports.postgres.sql import identifier, literal

connect = attached


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
