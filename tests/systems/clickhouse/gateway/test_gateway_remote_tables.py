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


@pytest.fixture(scope="module")
def elsewhere(gateway):
    """Run queries in an engine of another process; {table:...} becomes a table behind the gateway."""

    def run(*queries, password=gateway.password):
        address = f"'127.0.0.1:{gateway.native_port}'"

        def remote(table):
            return f"remote({address}, 'default', '{table}', '{gateway.user}', '{password}')"

        texts = [query.replace("{rows}", remote("rows")).replace("{missing}", remote("missing")) for query in queries]
        gateway.ask(
            "CREATE TABLE IF NOT EXISTS rows (n Int64, t Nullable(String), u UUID) ENGINE = MergeTree ORDER BY n"
        )
        command = [sys.executable, "-c", SESSION]
        done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    yield run
    gateway.ask("DROP TABLE IF EXISTS rows SYNC")


def test_rows_written_through_remote_are_read_through_remote(gateway, elsewhere):
    rows = "SELECT number, if(number % 2 = 0, NULL, toString(number)), toUUID('01234567-89ab-cdef-0123-456789abcdef')"
    written, count, first = elsewhere(
        f"INSERT INTO FUNCTION {{rows}} {rows} FROM numbers(150000)",
        "SELECT count(), sum(n), countIf(t IS NULL) FROM {rows}",
        "SELECT * FROM {rows} WHERE n < 2 ORDER BY n",
    )
    assert written == ""
    assert [int(number) for number in json.loads(count)] == [150000, 11249925000, 75000]
    lines = [json.loads(line) for line in first.splitlines()]
    assert [[int(line[0]), *line[1:]] for line in lines] == [
        [0, None, "01234567-89ab-cdef-0123-456789abcdef"],
        [1, "1", "01234567-89ab-cdef-0123-456789abcdef"],
    ]
    assert gateway.ask("SELECT uniqExact(n) FROM rows").body == b"150000\n"


def test_a_table_that_is_not_there_and_a_wrong_password_are_refused(gateway, elsewhere):
    (missing,) = elsewhere("SELECT * FROM {missing}")
    assert missing.startswith("refused: ")
    assert "missing" in missing
    (denied,) = elsewhere("SELECT * FROM {rows}", password=gateway.password[::-1])
    assert "AUTHENTICATION_FAILED" in denied or "Authentication failed" in denied
