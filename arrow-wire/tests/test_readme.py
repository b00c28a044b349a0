"""The README: its table of types matches the code, and its examples run."""

import datetime as dt
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import psycopg
import pytest

from clickhouse_server import DATABASE, Server

ROOT = Path(__file__).parent.parent
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)


@pytest.mark.process
def test_the_table_of_types_is_what_the_code_says() -> None:
    command = [sys.executable, str(ROOT / "types_table.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_examples_run(addresses: Any, server: Server) -> None:
    assert len(EXAMPLES) == 3
    url = f"{addresses.clickhouse}{'&' if '?' in addresses.clickhouse else '?'}database={DATABASE}"
    made = dict.fromkeys(("postgresql://user:password@host/db",), addresses.postgres)
    made["https://user:password@host:8443/?database=sales"] = url
    with psycopg.connect(addresses.postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS orders")
        exec(run(EXAMPLES[0], made), {})
        connection.execute("ALTER TABLE orders ADD day date DEFAULT '2026-02-01'")
        names: dict[str, Any] = {"uri": addresses.postgres}
        exec(run(EXAMPLES[1], made), names)
        assert names["frame"].rows() == [(1, "a", dt.date(2026, 2, 1)), (2, None, dt.date(2026, 2, 1))]
        connection.execute("DROP TABLE orders")
    server.ask("CREATE OR REPLACE TABLE orders (day Date, price Decimal(9, 2)) ENGINE = MergeTree ORDER BY day")
    frame = pl.DataFrame({"day": [dt.date(2026, 1, 1)] * 2, "price": [1, 2]})
    names = {"url": url, "frame": frame}
    exec(run(EXAMPLES[2], made), names)
    assert names["frame"].iloc[0, 1] == 3


def run(example: str, addresses: dict[str, str]) -> str:
    """Return an example with addresses of servers that are there."""
    for shown, there in addresses.items():
        example = example.replace(shown, there)
    return example
