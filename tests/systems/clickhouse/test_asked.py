"""What the reference client of ClickHouse brings of a person's query."""

import datetime as dt

import pytest

from harness.datasets.user_data import data, reading
from harness.lab.embedded import EmbeddedLab
from harness.model import LabError
from harness.systems.clickhouse import session
from harness.systems.clickhouse.asked import as_brought

LABEL = "CAST('a', 'Enum8(\\'a\\' = 7)')"


def test_types_that_arrow_takes_for_numbers_come_as_they_are(embedded_lab: EmbeddedLab) -> None:
    query = f"""
        SELECT toDateTime('2024-03-31 02:30:00', 'UTC') AS `a"t`, CAST(NULL, 'Nullable(DateTime)') AS none,
            {LABEL} AS label, toIPv4('1.2.3.4') AS ip, toLowCardinality('x') AS few,
            toDateTime64(1, 3, 'UTC') AS fine, unhex('00FF') AS raw -- ;
    """
    own = data.from_frame(reading.of_memory(session.answer(embedded_lab.endpoints, query)[0]))
    assert own.frame.to_dicts() == [
        {
            'a"t': dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC),
            "none": None,
            "label": "a",
            "ip": "1.2.3.4",
            "few": "x",
            "fine": dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC),
            "raw": b"\x00\xff",
        }
    ]


def test_a_query_of_other_types_is_asked_as_it_is() -> None:
    assert (
        as_brought("SELECT 1 AS a", [("a", "UInt8"), ("b", "Enum"), ("c", "Tuple(`x` DateTime64(3))")])
        == "SELECT 1 AS a"
    )


@pytest.mark.parametrize(
    ("of", "named"),
    [
        ("Tuple(DateTime, String)", "DateTime"),
        ("Nullable(UInt256)", "UInt256"),
        ("Map(String, Enum8('DateTime' = 1))", "Enum8"),
        ("Array(Map(String, IPv4))", "IPv4"),
        ("IntervalDay", "IntervalDay"),
        ("Variant(Int32, String)", "Variant"),
        ("Array(Dynamic)", "Dynamic"),
    ],
)
def test_what_has_no_form_is_refused_with_its_column(of: str, named: str) -> None:
    said = f'column "a": a query brings {named} as another type; ask for toString\\(`a`\\), or give the data as a file'
    with pytest.raises(LabError, match=said):
        as_brought("SELECT a", [("a", of)])


def test_states_of_aggregates_are_refused_and_what_is_simply_aggregated_comes() -> None:
    with pytest.raises(LabError, match=r"brings AggregateFunction as another type; ask for finalizeAggregation\(`a`\)"):
        as_brought("SELECT a", [("a", "AggregateFunction(sum, UInt8)")])
    assert as_brought("SELECT a", [("a", "SimpleAggregateFunction(sum, UInt64)")]) == "SELECT a"


def test_items_of_lists_and_bytes_inside_others_come_as_they_are(embedded_lab: EmbeddedLab) -> None:
    query = f"""
        SELECT [toDateTime('2024-03-31 02:30:00', 'UTC')] AS moments, [[{LABEL}], []] AS labels,
            [toIPv4('1.2.3.4'), NULL] AS hosts, CAST(1.5, 'BFloat16') AS short,
            [CAST(NULL, 'Nullable(BFloat16)')] AS no,
            [unhex('00FF'), 'a'] AS raw, tuple('é', [unhex('00FF')])::Tuple(t String, r Array(String)) AS both
    """
    found = session.answer(embedded_lab.endpoints, query)[0]
    assert found.to_pylist() == [
        {
            "moments": [dt.datetime(2024, 3, 31, 2, 30, tzinfo=dt.UTC)],
            "labels": [["a"], []],
            "hosts": ["1.2.3.4", None],
            "short": 1.5,
            "no": [None],
            "raw": [b"\x00\xff", b"a"],
            "both": {"t": "é", "r": [b"\x00\xff"]},
        }
    ]
    assert str(found.schema.field("short").type) == "float"
