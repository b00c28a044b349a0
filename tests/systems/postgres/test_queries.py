"""What the reference client of Postgres brings of a person's query."""

import pytest

from harness.lab.embedded import EmbeddedLab
from harness.model import LabError
from harness.systems.postgres import client


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT interval '1 day' AS d", 'column "d": a query brings an interval as months'),
        ("SELECT inet '10.0.0.1' AS i", 'column "i": a query brings inet as the driver has it; ask for its text'),
        ("SELECT ARRAY[1.5] AS a", 'column "a": a query brings numeric as the driver has it; ask for its text'),
        ("SELECT 7 AS n, ARRAY[1] AS flat, ARRAY[[1], [2]] AS deep;", 'column "deep": .* array of several dimensions'),
    ],
)
def test_a_query_whose_rows_would_come_as_others_is_refused(embedded_lab: EmbeddedLab, query: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        client.select(client.open_connection(embedded_lab.endpoints), query)


@pytest.mark.parametrize(
    "query", ["WITH a AS (SELECT 1 AS n) SELECT * FROM a -- all", "SELECT 1 AS n;", "SELECT 1 AS n ; "]
)
def test_a_query_may_end_as_people_end_them(embedded_lab: EmbeddedLab, query: str) -> None:
    connection = client.open_connection(embedded_lab.endpoints)
    assert client.select(connection, client.asked(connection, query)).to_pylist() == [{"n": 1}]


def test_a_query_with_arrays_brings_its_rows_and_no_more(embedded_lab: EmbeddedLab) -> None:
    query = "SELECT ARRAY[n, NULL] AS pairs, NULL::text[] AS words, n FROM generate_series(1, 2) n -- these"
    found = client.select(client.open_connection(embedded_lab.endpoints), query)
    assert found.to_pylist() == [{"pairs": [n, None], "words": None, "n": n} for n in (1, 2)]
