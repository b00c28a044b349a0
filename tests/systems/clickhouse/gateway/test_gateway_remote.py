"""Another engine uses a table of the gateway through remote(), as servers use each other."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

PROGRAM = """
import sys
import chdb

engine = chdb.connect(":memory:")
for query in sys.argv[1:]:
    print(engine.query(query, "CSV").bytes().decode(), end="")
engine.close()
"""


def other_engine(*queries: str) -> str:
    """Run queries in the engine of a separate process: one process holds one engine."""
    command = [sys.executable, "-c", PROGRAM, *queries]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def test_another_engine_writes_and_reads_a_table(gateway, table):
    remote = f"remote('127.0.0.1:{gateway.native_port}', 'default', '{table}', '{gateway.user}', '{gateway.password}')"
    texts = "if(number % 2, 'a\\tb', 'ä😀')"
    insert = f"INSERT INTO FUNCTION {remote} (number_1, kind, text_1) SELECT number, 'k', {texts} FROM numbers(200000)"
    select = f"SELECT count(), sum(number_1), countIf(text_1 = 'ä😀'), any(kind) FROM {remote}"
    assert other_engine(insert, select) == '200000,19999900000,100000,"k"\n'
    assert gateway.query(f"SELECT count() FROM {table}") == b"200000\n"


def test_a_compressed_insert_of_another_engine_arrives(gateway, table):
    remote = f"remote('127.0.0.1:{gateway.native_port}', 'default', '{table}', '{gateway.user}', '{gateway.password}')"
    insert = f"INSERT INTO FUNCTION {remote} (number_1) SELECT number FROM numbers(1000)"
    for codec in ("LZ4", "ZSTD", "NONE"):
        other_engine(f"{insert} SETTINGS network_compression_method = '{codec}'")
    assert gateway.query(f"SELECT count() FROM {table}") == b"3000\n"
