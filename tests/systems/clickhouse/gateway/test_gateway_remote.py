"""remote() of another engine reads and writes through the gateway, as between two servers."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

SESSION = """
import json, sys, chdb
session = chdb.connect(":memory:")
session.query("SET prefer_localhost_replica = 0")
answers = []
for query in json.load(sys.stdin):
    try:
        answers.append(session.query(query, "JSONCompactEachRow").bytes().decode())
    except RuntimeError as error:
        answers.append(f"refused: {error}")
print(json.dumps(answers))
"""


@pytest.fixture
def elsewhere(gateway):
    """Run queries in an engine of another process, because one process holds one; {rows} is a table of the gateway."""

    def run(*queries, password=gateway.password):
        def remote(table):
            where = f"127.0.0.1:{gateway.native_port}"
            return f"remote('{where}', 'default', '{table}', '{gateway.user}', '{password}')"

        strings = [query.format(rows=remote("rows"), missing=remote("missing")) for query in queries]
        command = [sys.executable, "-c", SESSION]
        done = subprocess.run(
            command, input=json.dumps(strings), capture_output=True, text=True, timeout=60, check=True
        )
        return json.loads(done.stdout.splitlines()[-1])

    columns = "n Int64, t Nullable(String), u UUID, k LowCardinality(String), s String"
    gateway.query(f"CREATE TABLE rows ({columns}) ENGINE = MergeTree ORDER BY n")
    yield run
    gateway.query("DROP TABLE rows SYNC")


def test_rows_written_through_remote_are_read_through_remote(gateway, elsewhere):
    rows = "SELECT number, if(number % 2 = 0, NULL, toString(number)), toUUID('01234567-89ab-cdef-0123-456789abcdef')"
    rows += ", 'k', if(number % 2, 'a\\tb', 'ä😀') FROM numbers(150000)"
    written, count, first = elsewhere(
        f"INSERT INTO FUNCTION {{rows}} {rows}",
        "SELECT count(), sum(n), countIf(t IS NULL), countIf(s = 'ä😀') FROM {rows}",
        "SELECT * FROM {rows} WHERE n < 2 ORDER BY n",
    )
    assert written == ""
    assert [int(number) for number in json.loads(count)] == [150000, 11249925000, 75000, 75000]
    lines = [json.loads(line) for line in first.splitlines()]
    assert [[int(line[0]), *line[1:]] for line in lines] == [
        [0, None, "01234567-89ab-cdef-0123-456789abcdef", "k", "ä😀"],
        [1, "1", "01234567-89ab-cdef-0123-456789abcdef", "k", "a\tb"],
    ]
    assert gateway.query("SELECT uniqExact(n) FROM rows") == b"150000\n"


def test_a_compressed_insert_of_another_engine_arrives(gateway, elsewhere):
    insert = "INSERT INTO FUNCTION {rows} (n) SELECT number FROM numbers(1000) SETTINGS network_compression_method = "
    assert elsewhere(*(f"{insert}'{codec}'" for codec in ("LZ4", "ZSTD", "NONE"))) == ["", "", ""]
    assert gateway.query("SELECT count() FROM rows") == b"3000\n"


def test_a_table_that_is_not_there_and_a_wrong_password_are_refused(gateway, elsewhere):
    (missing,) = elsewhere("SELECT * FROM {missing}")
    assert missing.startswith("refused: ")
    assert "missing" in missing
    (denied,) = elsewhere("SELECT * FROM {rows}", password=gateway.password[::-1])
    assert "AUTHENTICATION_FAILED" in denied or "Authentication failed" in denied
