"""httpx, an HTTP client: ClickHouse answers in Parquet: https://clickhouse.com/docs/interfaces/formats/Parquet"""

import io
from contextlib import contextmanager

from harness.registry import phase, transport
from harness.transports.clickhouse.sql import identifier

CLIENT = "httpx"
ENDPOINT = "clickhouse_http"

# A socket that is silent for so long is broken (the native clients have the same default).
TIMEOUT_SECONDS = 300

# httpx offers every compression it finds installed, and since 25.10 a server takes the offer: without this the bytes on
# the wire would depend on which other packages are there.
# The other two are the server's defaults since 24.3, written down because they may change.
PARQUET_ZSTD = {
    "enable_http_compression": "0",
    "output_format_parquet_compression_method": "zstd",
    "output_format_parquet_string_as_string": "1",
}
PARQUET_LZ4 = {**PARQUET_ZSTD, "output_format_parquet_compression_method": "lz4"}
PARQUET_UNCOMPRESSED = {**PARQUET_ZSTD, "output_format_parquet_compression_method": "none"}
PARQUET_ROW_GROUPS = {**PARQUET_LZ4, "output_format_parquet_row_group_size": "50000"}


@contextmanager
def connect(uri):
    """Yield a client that holds one open connection."""
    import httpx

    url = httpx.URL(uri)
    with httpx.Client(
        base_url=url.copy_with(userinfo=b"", query=None),
        params=url.params,
        auth=(url.username, url.password),
        timeout=TIMEOUT_SECONDS,
        limits=httpx.Limits(keepalive_expiry=None),  # the default is 5 s
    ) as client:
        _send(client, "SELECT 1")
        yield client


def _send(client, query, settings=None, encoding="identity"):
    """Run one query and return the bytes of the answer, decompressed; a refusal raises RuntimeError with its text."""
    response = client.post("/", params=settings, content=query, headers={"Accept-Encoding": encoding})
    if response.is_error:
        raise RuntimeError(f"ClickHouse answered {response.status_code}: {response.text}")
    answer = response.content
    _raise_if_broken_off(answer, response.headers.get("X-ClickHouse-Exception-Tag"))
    return answer


def _raise_if_broken_off(answer, tag):
    """Raise RuntimeError when the answer ends with the server's mark of a failure after the first rows.

    The status is sent before the rows. A server that fails later breaks off the answer (post() raises), and since 25.11
    it also ends it with a message between two marks that repeat a header.
    """
    if tag and tag.encode() in answer[-64:]:
        raise RuntimeError(f"ClickHouse failed in the middle of its answer: {answer[-2000:].decode(errors='replace')}")


def _parquet(client, table, settings):
    return _send(client, f"SELECT * FROM {identifier(table)} FORMAT Parquet", settings)


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT Parquet",
    payload="Parquet",
    requires=["httpx", "polars"],
    settings=PARQUET_UNCOMPRESSED,
)
def read_polars_parquet_uncompressed(connection, table):
    """Fetch the table as one uncompressed Parquet file and let polars decode it.

    Tuned: output_format_parquet_compression_method=none, for a fast network. A UUID arrives as 16 bytes of Binary, in
    the order of its text.
    """
    import polars as pl

    with phase("receive"):
        parquet = _parquet(connection, table, PARQUET_UNCOMPRESSED)
    with phase("decode"):
        return pl.read_parquet(io.BytesIO(parquet))


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT Parquet",
    payload="Parquet",
    requires=["httpx", "pandas", "pyarrow.parquet"],
    settings=PARQUET_UNCOMPRESSED,
)
def read_pandas_parquet_uncompressed(connection, table):
    """Fetch the table as one uncompressed Parquet file and let pandas decode it.

    Tuned: output_format_parquet_compression_method=none, for a fast network. The columns stay what they are in Arrow
    (dtype_backend="pyarrow"), so that no value becomes a Python object and nulls stay nulls.
    """
    import pandas as pd

    with phase("receive"):
        parquet = _parquet(connection, table, PARQUET_UNCOMPRESSED)
    with phase("decode"):
        return pd.read_parquet(io.BytesIO(parquet), dtype_backend="pyarrow")


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT Parquet",
    payload="Parquet",
    requires=["httpx", "polars"],
    settings=PARQUET_LZ4,
)
def read_polars_parquet_lz4(connection, table):
    """Fetch the table as one lz4 Parquet file and let polars decode it.

    Tuned: output_format_parquet_compression_method=lz4, which costs both sides less than the default zstd. A UUID
    arrives as 16 bytes of Binary, in the order of its text.
    """
    import polars as pl

    with phase("receive"):
        parquet = _parquet(connection, table, PARQUET_LZ4)
    with phase("decode"):
        return pl.read_parquet(io.BytesIO(parquet))


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT Parquet",
    payload="Parquet",
    requires=["httpx", "pandas", "pyarrow.parquet"],
    settings=PARQUET_LZ4,
)
def read_pandas_parquet_lz4(connection, table):
    """Fetch the table as one lz4 Parquet file and let pandas decode it.

    Tuned: output_format_parquet_compression_method=lz4, which costs both sides less than the default zstd. The columns
    stay what they are in Arrow (dtype_backend="pyarrow"), so that no value becomes a Python object and nulls stay
    nulls.
    """
    import pandas as pd

    with phase("receive"):
        parquet = _parquet(connection, table, PARQUET_LZ4)
    with phase("decode"):
        return pd.read_parquet(io.BytesIO(parquet), dtype_backend="pyarrow")


@transport(
    "read",
    frame="polars",
    path="HTTP SELECT FORMAT Parquet",
    payload="Parquet",
    requires=["httpx", "polars"],
    settings=PARQUET_ROW_GROUPS,
)
def read_polars_parquet_row_groups(connection, table):
    """Fetch the table as one lz4 Parquet file of small row groups and let polars decode it.

    Tuned: output_format_parquet_row_group_size=50000 besides lz4: the reader decodes row groups side by side, and the
    default of a million rows leaves it only one for most tables. A UUID arrives as 16 bytes of Binary, in the order of
    its text.
    """
    import polars as pl

    with phase("receive"):
        parquet = _parquet(connection, table, PARQUET_ROW_GROUPS)
    with phase("decode"):
        return pl.read_parquet(io.BytesIO(parquet))


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT Parquet",
    payload="Parquet",
    requires=["httpx", "pandas", "pyarrow.parquet"],
    settings=PARQUET_ROW_GROUPS,
)
def read_pandas_parquet_row_groups(connection, table):
    """Fetch the table as one lz4 Parquet file of small row groups and let pandas decode it.

    Tuned: output_format_parquet_row_group_size=50000 besides lz4: the reader decodes row groups side by side, and the
    default of a million rows leaves it only one for most tables. The columns stay what they are in Arrow
    (dtype_backend="pyarrow"), so that no value becomes a Python object and nulls stay nulls.
    """
    import pandas as pd

    with phase("receive"):
        parquet = _parquet(connection, table, PARQUET_ROW_GROUPS)
    with phase("decode"):
        return pd.read_parquet(io.BytesIO(parquet), dtype_backend="pyarrow")


@transport(
    "read",
    frame="pandas",
    path="HTTP SELECT FORMAT Parquet",
    payload="Parquet",
    requires=["httpx", "pandas", "pyarrow.parquet"],
    settings=PARQUET_ZSTD,
)
def read_pandas_parquet_lossless(connection, table):
    """Fetch the table as one zstd Parquet file and keep its Arrow columns in pandas: every value comes through.

    The published read makes float64 of integers with nulls and NaN of a null among floats. The columns stay what they
    are in Arrow (dtype_backend="pyarrow"), so that no value becomes a Python object and nulls stay nulls.
    """
    import pandas as pd

    with phase("receive"):
        parquet = _parquet(connection, table, PARQUET_ZSTD)
    with phase("decode"):
        return pd.read_parquet(io.BytesIO(parquet), dtype_backend="pyarrow")
