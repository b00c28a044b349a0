"""connectorx, a Rust reader that fills columns without Python objects: https://sfu-db.github.io/connector-x/"""

from contextlib import nullcontext

from harness.registry import transport
from harness.transports.postgres.sql import identifier

connect = nullcontext  # the URI: connectorx opens and closes a connection in every call and cannot reuse one


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows", requires=["pyarrow"])
def read_polars_binary(uri, table):
    """Read the table with connectorx over COPY ... TO STDOUT in binary, its default protocol.

    The driver decodes the server's binary rows straight into Arrow columns. A uuid arrives as its string, every other
    value with the table's type. The time includes opening a connection.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="polars", protocol="binary")


@transport("COPY TO STDOUT (FORMAT binary)", "binary rows")
def read_pandas_binary(uri, table):
    """Read the table with connectorx over COPY ... TO STDOUT in binary, its default protocol.

    For pandas the driver first counts the rows in a separate query outside any transaction. If the table changes in
    between, the read fails. Strings and uuids arrive as Python strings (dtype object), integers as the nullable Int64.
    connectorx 0.4.6 calls functions that pandas 3.1 deprecates. The time includes opening a connection.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="pandas", protocol="binary")


@transport("COPY TO STDOUT", "delimited text", requires=["pyarrow"])
def read_polars_csv(uri, table):
    """Read the table with connectorx over COPY ... TO STDOUT as CSV.

    The driver parses the text in Rust into the table's types. An empty string arrives as null, because connectorx
    ignores the quotes that tell the two apart. The time includes opening a connection.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="polars", protocol="csv")


@transport("COPY TO STDOUT", "delimited text")
def read_pandas_csv(uri, table):
    """Read the table with connectorx over COPY ... TO STDOUT as CSV.

    As in read_polars_csv, an empty string arrives as a missing value. connectorx counts the rows first. Strings arrive
    as Python strings (dtype object), integers as the nullable Int64.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="pandas", protocol="csv")


@transport("row fetch", "rows", requires=["pyarrow"])
def read_polars_cursor(uri, table):
    """Read the table with connectorx through a plain SELECT, whose rows the driver fetches in binary.

    Use it for a server without COPY. A uuid arrives as its string, every other value with the table's type. The time
    includes opening a connection.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="polars", protocol="cursor")


@transport("row fetch", "rows")
def read_pandas_cursor(uri, table):
    """Read the table with connectorx through a plain SELECT, whose rows the driver fetches in binary.

    Use it for a server without COPY. connectorx counts the rows first. Strings arrive as Python strings (dtype object),
    integers as the nullable Int64.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="pandas", protocol="cursor")


@transport("read_database_uri", "binary rows", requires=["pyarrow", "connectorx"])
def read_polars_read_database_uri(uri, table):
    """Read the table with polars.read_database_uri and its default engine, connectorx.

    polars passes the query to connectorx, which reads over a binary COPY, so the result is the same. The time includes
    opening a connection.
    """
    import polars as pl

    return pl.read_database_uri(f"SELECT * FROM {identifier(table)}", uri, engine="connectorx")


@transport("SELECT 1", "one value", requires=["pyarrow"], origin="limit")
def call_select_1(uri):
    """Run `SELECT 1` over a new connection to time what every call of this client includes."""
    import connectorx

    return connectorx.read_sql(uri, "SELECT 1 AS one", return_type="arrow")["one"][0].as_py()
