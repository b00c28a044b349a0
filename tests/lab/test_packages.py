"""Which transports take packages of PyPI alone."""

import pytest

from harness import registry
from harness.lab.packages import from_pypi


@pytest.mark.parametrize(
    ("transport", "alone"),
    [
        ("postgres.pgpq.write_polars_copy_binary", True),
        ("postgres.duckdb.write_polars_insert", True),  # its extensions are wheels of PyPI
        ("postgres.asyncpg.read_pandas_copy_binary", True),  # compiled by Numba, which is one
        ("clickhouse.urllib.write_polars_parquet", True),
        ("postgres.psycopg.write_polars_tuned", False),
        ("postgres.psycopg.read_pandas_tuned", False),  # requires a module within arrow_wire
        ("clickhouse.http_client.read_polars_tuned", False),
        ("postgres.pg_parquet.write_polars_parquet_stream", False),  # the server needs an extension
    ],
)
def test_a_transport_is_from_pypi_where_neither_a_module_nor_the_server_asks_for_more(transport, alone):
    assert from_pypi(registry.one(transport)) is alone
