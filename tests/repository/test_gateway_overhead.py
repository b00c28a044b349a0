"""The page of limits says of the gateway what was recorded (benchmarks/gateway.py)."""

from dataclasses import replace

from benchmarks import gateway
from benchmarks.gateway import FEW, MANY, Pair

READS = [f"clickhouse.{client}.read_polars_rows" for client in "abcd"]


def made_up(rows, seconds, added):
    return [Pair("2026-01-01", "26.9", name, rows, own + added, own) for name, own in zip(READS, seconds, strict=True)]


def test_the_paragraph_has_the_added_time_of_one_row_and_the_order_of_many():
    few, many = made_up(FEW, (0.010, 0.020, 0.005, 0.030), 0.0012), made_up(MANY, (0.1, 0.2, 0.3, 0.4), 0.1)
    said = gateway.paragraph([*few, *many])
    assert "took 1.2 ms longer" in said
    assert "the median of 4 transports, of which" in said
    assert "took 1.42 times as long" in said
    assert "order is 1.00 in each direction (2026-01-01, ClickHouse 26.9)" in said
    swapped = [replace(one, gateway=1 - one.gateway) for one in many]
    assert "order is -1.00 in" in gateway.paragraph([*few, *swapped])


def test_the_page_says_what_was_recorded():
    recorded = gateway.read()
    assert {one.rows for one in recorded} == {FEW, MANY}
    assert gateway.page(recorded) == gateway.PAGE.read_text(encoding="utf-8")
