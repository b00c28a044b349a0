"""The client and the server compute the same sums of a table, and the sums show each change."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from harness.check import sums
from harness.lab.embedded import EmbeddedLab
from harness.model import LabError
from harness.systems import SYSTEMS
from tests.streams import LOGICAL_TYPES, hostile, opened

BOTH = pytest.mark.parametrize("system", sorted(name for name, of in SYSTEMS.items() if not of.lacks("sums")))
ROWS = 400


def frame(rows: int = ROWS) -> pl.DataFrame:
    return pl.DataFrame(hostile(rows))


Loaded = Callable[[pl.DataFrame], sums.Sums]


@pytest.fixture
def loaded(system: str, embedded_lab: EmbeddedLab, tmp_path: Path) -> Iterator[Loaded]:
    """Load a frame and return the sums that the server computes."""
    with opened(system, embedded_lab) as server:

        def of(rows: pl.DataFrame) -> sums.Sums:
            rows.write_parquet(tmp_path / "rows.parquet")
            table = server.of_hostile("summed")
            SYSTEMS[system].client.load(server.connection, table, tmp_path / "rows.parquet", LOGICAL_TYPES)
            return server.sums(table, LOGICAL_TYPES)

        yield of


def here(rows: pl.DataFrame) -> sums.Sums:
    """Return the sums that this process computes."""
    return sums.of_table(rows.to_arrow(), LOGICAL_TYPES)


@BOTH
def test_server_and_client_compute_the_same_of_every_logical_type_in_any_order(system: str, loaded: Loaded) -> None:
    expected = here(frame())
    assert loaded(frame().sample(fraction=1, shuffle=True, seed=1)) == expected
    assert expected.rows == ROWS
    assert all(expected.columns.values())
    assert min(expected.nulls.values()) > 0


@BOTH
def test_no_rows_have_sums_too(system: str, loaded: Loaded) -> None:
    assert (
        loaded(frame(0))
        == here(frame(0))
        == sums.Sums(0, dict.fromkeys(LOGICAL_TYPES, 0), dict.fromkeys(LOGICAL_TYPES, 0), 0)
    )


def with_values(rows: pl.DataFrame, name: str, values: dict[int, Any]) -> pl.DataFrame:
    """Return rows with other values in some rows of a column."""
    changed = [values.get(place, value) for place, value in enumerate(rows[name])]
    return rows.with_columns(pl.Series(name, changed, rows.schema[name]))


NULLS = frame()["text, mostly"].null_count()
CHANGES: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "a bit": (
        lambda rows: with_values(rows, "small", {77: rows["small"][77] ^ 1024}),
        "small: other values than expected",
    ),
    "two values swapped": (
        lambda rows: with_values(rows, "large", {3: rows["large"][4], 4: rows["large"][3]}),
        "values are in other rows than expected",
    ),
    "an empty text nulled": (
        lambda rows: with_values(rows, "text, mostly", {1: None}),
        f"text, mostly: expected {NULLS} nulls, found {NULLS + 1}",
    ),
    "a row twice": (lambda rows: pl.concat([rows, rows[5:6]]), "expected 400 rows, found 401"),
    "a row dropped": (lambda rows: rows[:-1], "expected 400 rows, found 399"),
    "a row in place of another": (
        lambda rows: pl.concat([rows[:2], rows[3:], rows[5:6]]),
        "small: other values than expected",
    ),
}


@BOTH
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_seen_and_named(system: str, loaded: Loaded, change: str) -> None:
    changed, said = CHANGES[change]
    expected = here(frame())
    assert said in sums.differences(expected, loaded(changed(frame())))
    assert sums.differences(expected, expected) == []


def test_sums_of_parts_add_up_whatever_the_parts() -> None:
    rows = frame()
    parts = [here(part) for part in rows.iter_slices(133)]
    assert len(parts) == 4
    assert sum(parts[1:], parts[0]) == here(rows)


def test_without_sums_of_columns_whole_rows_tell() -> None:
    expected = here(frame())
    found = sums.Sums(expected.rows, expected.nulls, {}, expected.whole + 1)
    assert sums.differences(expected, found) == ["other values than expected"]
    assert sums.differences(expected, sums.Sums(expected.rows, expected.nulls, {}, expected.whole)) == []


def test_a_logical_type_without_canonical_bytes_is_refused_by_name() -> None:
    with pytest.raises(LabError, match='column "prices": no sums of decimal'):
        sums.require({"a": "int32", "prices": "decimal(12, 2)"})
