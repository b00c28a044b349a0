"""connectorx, a reader in Rust that fills columns without Python objects: https://sfu-db.github.io/connector-x/"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.postgres.sql import identifier


@contextmanager
def connect(uri):
    """Yield the URI: connectorx opens a connection in every call and closes it, and cannot be given an open one."""
    yield uri


@transport(
    "read",
    frame="polars",
    path="COPY TO STDOUT (FORMAT binary)",
    payload="binary rows",
    requires=["polars", "pyarrow", "connectorx"],
    lossy={"refused": "far_dates decimals"},
)
def read_polars_binary(uri, table):
    """Read the table with connectorx over COPY ... TO STDOUT in binary, its default protocol.

    The driver decodes the server's binary rows straight into Arrow columns. A uuid comes as its text, every other type
    as it is in the table. Opening a connection is part of the call.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="polars", protocol="binary")


@transport(
    "read",
    frame="pandas",
    path="COPY TO STDOUT (FORMAT binary)",
    payload="binary rows",
    requires=["pandas", "connectorx"],
    lossy={"changed": "decimals", "refused": "far_dates arrays"},
)
def read_pandas_binary(uri, table):
    """Read the table with connectorx over COPY ... TO STDOUT in binary, its default protocol.

    For pandas the driver counts the rows first, with a query of its own and outside of any transaction: a table that
    changes in between is an error. Texts and uuids come as Python strings (dtype object), integers as the nullable
    Int64. connectorx 0.4.6 calls what pandas 3.1 deprecates. Opening a connection is part of the call.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="pandas", protocol="binary")


@transport(
    "read",
    frame="polars",
    path="COPY TO STDOUT",
    payload="delimited text",
    requires=["polars", "pyarrow", "connectorx"],
    lossy={"changed": "empty_text", "refused": "far_dates decimals"},
)
def read_polars_csv(uri, table):
    """Read the table with connectorx over COPY ... TO STDOUT as CSV.

    The driver parses the text in Rust into the types of the table. An empty text comes back as null: connectorx does
    not look at the quotes that tell the two apart. Opening a connection is part of the call.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="polars", protocol="csv")


@transport(
    "read",
    frame="pandas",
    path="COPY TO STDOUT",
    payload="delimited text",
    requires=["pandas", "connectorx"],
    lossy={"changed": "empty_text decimals", "refused": "far_dates arrays"},
)
def read_pandas_csv(uri, table):
    """Read the table with connectorx over COPY ... TO STDOUT as CSV.

    As to polars, an empty text comes back as missing; as with the binary protocol the rows are counted first, texts
    come as Python strings (dtype object) and integers as the nullable Int64.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="pandas", protocol="csv")


@transport(
    "read",
    frame="polars",
    path="row fetch",
    payload="rows",
    requires=["polars", "pyarrow", "connectorx"],
    lossy={"refused": "far_dates decimals enum"},
)
def read_polars_cursor(uri, table):
    """Read the table with connectorx through a plain SELECT, whose rows the driver fetches in binary.

    What a server without COPY is read with. A uuid comes as its text, every other type as it is in the table. Opening
    a connection is part of the call.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="polars", protocol="cursor")


@transport(
    "read",
    frame="pandas",
    path="row fetch",
    payload="rows",
    requires=["pandas", "connectorx"],
    lossy={"changed": "decimals", "refused": "far_dates arrays enum"},
)
def read_pandas_cursor(uri, table):
    """Read the table with connectorx through a plain SELECT, whose rows the driver fetches in binary.

    What a server without COPY is read with. The rows are counted first, texts come as Python strings (dtype object)
    and integers as the nullable Int64.
    """
    import connectorx

    return connectorx.read_sql(uri, f"SELECT * FROM {identifier(table)}", return_type="pandas", protocol="cursor")


@transport(
    "read",
    frame="polars",
    path="read_database_uri",
    payload="binary rows",
    requires=["polars", "pyarrow", "connectorx"],
    lossy={"refused": "far_dates decimals"},
)
def read_polars_read_database_uri(uri, table):
    """Read the table with polars.read_database_uri and its default engine, which is connectorx.

    Polars hands the query to connectorx, which reads over a binary COPY: what comes back is the same. Opening a
    connection is part of the call.
    """
    import polars as pl

    return pl.read_database_uri(f"SELECT * FROM {identifier(table)}", uri, engine="connectorx")


@transport("call", path="SELECT 1", payload="one value", requires=["pyarrow", "connectorx"], origin="limit")
def call_select_1(uri):
    """Run `SELECT 1` over a new connection to time what every call of this client includes."""
    import connectorx

    return connectorx.read_sql(uri, "SELECT 1 AS one", return_type="arrow")["one"][0].as_py()
