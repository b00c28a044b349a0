"""What the reference client of Postgres brings of a person's query."""

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest

from harness.datasets.user_data import data, reading
from harness.lab.embedded import EmbeddedLab
from harness.model import LabError
from harness.systems.postgres import session


def brought(lab: EmbeddedLab, query: str) -> pa.Table:
    return session.answer(lab.endpoints, query)[0]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT interval '1 day' AS d", r'column "d": .* found interval; ask for extract\(epoch FROM "d"\), or give'),
        ("SELECT ARRAY[interval '1 day'] AS d", r'column "d": .* found interval\[\]; ask for "d"::text\[\], or give'),
        ("SELECT inet '10.0.0.1' AS i", 'column "i": .* found inet; ask for "i"::text, or give the data as a file'),
        ("SELECT int4range(1, 5) AS r", 'column "r": .* found int4range; ask for "r"::text'),
        ("SELECT B'101' AS b", 'column "b": .* found bit; ask for "b"::text'),
        ("SELECT tsvector 'a b' AS t", 'column "t": .* found tsvector; ask for "t"::text'),
        ("SELECT row(1, 'a') AS r", 'column "r": .* found record; ask for "r"::text'),
        ("SELECT ARRAY[1.5] AS a", r'column "a": .* found numeric\[\]; ask for "a"::text\[\]'),
        ("SELECT '{1.5}'::money[] AS a", r'column "a": .* found money\[\]; ask for "a"::text\[\]'),
        ("SELECT ARRAY[jsonb '{}'] AS a", r'column "a": .* found jsonb\[\]; ask for "a"::text\[\]'),
        ("SELECT 7 AS n, ARRAY[1] AS flat, ARRAY[[1], [2]] AS deep;", 'column "deep": .* array of several dimensions'),
        (
            "SELECT timestamp 'infinity' AS t",
            'column "t": .* found infinity or a moment after 294246; leave these rows',
        ),
        ("SELECT ARRAY[now(), '-infinity'] AS t", 'column "t": .* found infinity'),
        ("SELECT date '-infinity' AS d UNION ALL SELECT current_date", 'column "d": .* found infinity'),
        ("SELECT time '24:00' AS t", 'column "t": .* found the time 24:00'),
        ("SELECT 1 AS n, 2 AS n", 'expected columns of different names in the answer of the query, found "n" twice'),
    ],
)
def test_a_query_whose_rows_would_come_as_others_is_refused(embedded_lab: EmbeddedLab, query: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        brought(embedded_lab, query)


@pytest.fixture
def types_of_ones_own(embedded_lab: EmbeddedLab) -> Iterator[None]:
    """An enum, a domain over money, and a composite type."""
    made = {"TYPE mood": "AS ENUM ('glad', 'sad')", "DOMAIN price": "AS money", "TYPE pair": "AS (a int, b int)"}
    made |= {"DOMAIN vague": "AS mood"}
    with psycopg.connect(embedded_lab.endpoints["postgres"], autocommit=True) as connection:
        for name, of in made.items():
            connection.execute(f"CREATE {name} {of}")
        yield
        for name in reversed(made):
            connection.execute(f"DROP {name}")


@pytest.mark.usefixtures("types_of_ones_own")
def test_money_comes_with_its_digits_enums_as_their_labels_and_an_oid_without_a_sign(embedded_lab: EmbeddedLab) -> None:
    query = """
        SELECT 1234.5::money AS "a""b", NULL::price AS price, 'sad'::mood AS mood, ARRAY['glad', NULL]::mood[] AS moods,
            'glad'::vague AS vague, 4294967295::oid AS oid, 7 AS n -- these
    """
    user_data = data.from_frame(reading.of_memory(brought(embedded_lab, query)))
    assert user_data.frame.to_dicts() == [
        {
            'a"b': Decimal("1234.50"),
            "price": None,
            "mood": "sad",
            "moods": ["glad", None],
            "vague": "glad",
            "oid": 4294967295,
            "n": 7,
        }
    ]
    with pytest.raises(LabError, match=r'column "p": .* found pair; ask for "p"::text'):
        brought(embedded_lab, "SELECT (1, 2)::pair AS p")


def test_the_last_moments_that_postgres_and_a_frame_have_come_as_they_are(embedded_lab: EmbeddedLab) -> None:
    query = """
        SELECT t, t::date AS d, time '23:59:59.999999' AS h
        FROM unnest(ARRAY[timestamp '294246-12-31 23:59:59', '4713-01-01 BC']) t
    """
    found = brought(embedded_lab, query)
    days = [106_751_981, -2_440_550]
    assert [one.value // (86_400 * 10**6) for one in found["t"]] == days
    assert found["d"].cast(pa.int32()).to_pylist() == days
    assert found["h"].to_pylist() == [dt.time(23, 59, 59, 999_999)] * 2


@pytest.mark.parametrize(
    "query",
    [
        "WITH a AS (SELECT 1 AS n) SELECT * FROM a -- all",
        "SELECT 1 AS n;",
        "SELECT 1 AS n ; ",
        "SELECT 1 AS n; -- all; of it",
        "SELECT 1 AS n /* a /* b */ ; */ ;;\n-- x",
    ],
)
def test_a_query_may_end_as_people_end_them(embedded_lab: EmbeddedLab, query: str) -> None:
    assert brought(embedded_lab, query).to_pylist() == [{"n": 1}]


def test_a_query_with_arrays_brings_its_rows_and_no_more(embedded_lab: EmbeddedLab) -> None:
    query = "SELECT ARRAY[n, NULL] AS pairs, NULL::text[] AS words, n FROM generate_series(1, 2) n -- these"
    found = brought(embedded_lab, query)
    assert found.to_pylist() == [{"pairs": [n, None], "words": None, "n": n} for n in (1, 2)]
