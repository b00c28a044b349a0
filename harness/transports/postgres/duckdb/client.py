"""DuckDB with Postgres attached as a database: https://duckdb.org/docs/stable/core_extensions/postgres"""

from contextlib import contextmanager

from harness.transports.postgres.sql import literal


@contextmanager
def attached(uri):
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
