"""SQLAlchemy over clickhouse-driver, without loss: https://github.com/xzkostyan/clickhouse-sqlalchemy"""

from contextlib import contextmanager

from harness.registry import transport
from harness.transports.clickhouse.sql import for_text, identifier

CLIENT = "sqlalchemy"
ENDPOINT = "clickhouse_native"


@contextmanager
def connect(uri):
    """Yield a SQLAlchemy connection.

    The dialect closes the native connection with every result it has read (clickhouse-sqlalchemy 0.3.2): every read
    connects anew, and that is part of its time.
    """
    from sqlalchemy import create_engine, make_url

    engine = create_engine(make_url(uri).set(drivername="clickhouse+native"))
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def _typed(values, kind):
    """Return a column for pandas: Arrow where a number may be null (None and NaN differ there), all else as it is."""
    import pandas as pd
    import pyarrow as pa

    kind = kind.removeprefix("LowCardinality(")
    if not kind.startswith(("Nullable(Int", "Nullable(UInt", "Nullable(Float")):
        return values
    return pd.arrays.ArrowExtensionArray(pa.array(values, pa.type_for_alias(kind[9:].rstrip(")").lower())))


@transport(
    "read",
    frame="pandas",
    path="row fetch",
    payload="rows",
    requires=["clickhouse_driver", "clickhouse_sqlalchemy.drivers.native.base", "pandas", "pyarrow", "sqlalchemy"],
    lossy={"changed": "timestamps timestamps_tz padded_text"},
)
def read_pandas_rows_lossless(connection, table):
    """Fetch all rows through SQLAlchemy, turn them into columns and keep nulls among numbers: nothing is lost.

    The published read makes float64 of integers with nulls and NaN of a null among floats; here these columns are Arrow
    (pandas.ArrowDtype). UUIDs and dates stay Python objects.
    """
    import pandas as pd
    from sqlalchemy import text

    result = connection.execute(text(for_text(f"SELECT * FROM {identifier(table)}")))
    described, rows = result.cursor.description, result.all()
    columns = zip(described, zip(*rows, strict=True) if rows else [()] * len(described), strict=True)
    return pd.DataFrame({name: _typed(values, kind) for (name, kind, *_), values in columns})
