"""DuckDB with Postgres attached as a database of its own: https://duckdb.org/docs/stable/core_extensions/postgres"""

from contextlib import contextmanager

from harness.transports.postgres.sql import literal


@contextmanager
def attached(uri):
    """Yield a DuckDB in memory that has Postgres attached as `pg`, with the schema in which the server looks first.

    The extension comes from its wheel: nothing is downloaded. DuckDB reads Postgres' catalogue when it first needs it
    and keeps it: a table that another connection makes anew with other columns is not noticed.
    """
    import duckdb
    import duckdb_extensions

    with duckdb.connect() as connection:
        duckdb_extensions.import_extension("postgres_scanner", con=connection)
        connection.execute("LOAD postgres_scanner")
        connection.execute(f"ATTACH {literal(uri)} AS pg (TYPE postgres)")
        # DuckDB takes the schema "public" whatever the server's search path is.
        ((schema,),) = connection.execute("FROM postgres_query('pg', 'SELECT current_schema()')").fetchall()
        connection.execute("DETACH pg")
        connection.execute(f"ATTACH {literal(uri)} AS pg (TYPE postgres, SCHEMA {literal(schema)})")
        yield connection
