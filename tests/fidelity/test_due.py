"""A pair is skipped only if it ended as declared with the same inputs, and never on the day of its quarter."""

import datetime as dt
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.datasets.hostile.common_kinds import KINDS
from harness.fidelity import select
from harness.fidelity.examination import pairs
from harness.model import Fate, Finding, Transport
from harness.show import script
from tests.fidelity import due

ENTRIES = select("postgres.psycopg.*")
TODAY = dt.date(2026, 11, 26)
Change = Callable[[Transport], Transport]


def all_came_through(place: Path) -> due.Known:
    for entry in ENTRIES:
        due.keep(place, entry, [Finding(entry, kind.name, Fate.EXACT, "") for kind in pairs(entry)])
    return due.known(place)


def chosen(known: due.Known, entries: list[Transport] = ENTRIES, day: dt.date = TODAY) -> set[tuple[str, str]]:
    return {(entry, kind) for entry, kinds in due.choose(entries, known, day)[0].items() for kind in kinds}


def every_pair(entries: list[Transport] = ENTRIES) -> set[tuple[str, str]]:
    return {(entry.id, kind.name) for entry in entries for kind in pairs(entry)}


def test_of_what_came_through_each_pair_is_due_on_one_day_of_four(tmp_path: Path) -> None:
    known = all_came_through(tmp_path)
    days = [chosen(known, day=TODAY + dt.timedelta(days=days)) for days in range(4)]
    assert Counter(pair for day in days for pair in day) == dict.fromkeys(every_pair(), 1)
    assert all(len(day) < len(every_pair()) / 2 for day in days)


def changes(name: str) -> list[Transport]:
    first, *others = ENTRIES
    (kind, *_) = [kind.name for kind in pairs(first) if kind.name not in first.lossy]
    changed = {
        "a declared loss": replace(first, lossy=first.lossy | {kind: Fate.CHANGED}),
        "what it needs": replace(first, needs=(*first.needs, "s3")),
        "a client": replace(first, requires=(*first.requires, "polars.exceptions")),
    }
    return [changed[name], *others]


@pytest.mark.parametrize(("name", "pairs_of_it"), [("a declared loss", 1), ("what it needs", 0), ("a client", 0)])
def test_a_pair_whose_transport_changed_is_due(tmp_path: Path, name: str, pairs_of_it: int) -> None:
    known = all_came_through(tmp_path)
    entries = changes(name)
    usual = {day: chosen(known, day=TODAY + dt.timedelta(days=day)) for day in range(4)}
    of_first = [chosen(known, entries, TODAY + dt.timedelta(days=day)) - usual[day] for day in range(4)]
    assert {len(new) for new in of_first} == {0, pairs_of_it or len(pairs(ENTRIES[0]))}
    assert {transport for new in of_first for transport, _ in new} == {ENTRIES[0].id}


def test_a_transport_is_due_when_a_line_of_what_lab_show_prints_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, first = all_came_through(tmp_path), ENTRIES[0]
    usual = chosen(known)
    monkeypatch.setattr(due, "script", lambda entry: script(entry) + ("# changed" if entry is first else ""))
    assert chosen(known) == usual | every_pair([first])


def test_every_pair_is_due_when_the_code_that_judges_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = all_came_through(tmp_path)
    monkeypatch.setattr(due, "_JUDGES", (*due._JUDGES, "harness/machine"))
    assert chosen(known) == every_pair()


def test_a_kind_whose_rows_changed_is_due_for_every_transport(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = all_came_through(tmp_path)
    usual = chosen(known)
    tab = KINDS["tab"]
    monkeypatch.setattr(due, "_of_kind", lambda kind, system: "other rows" if kind is tab else before(kind, system))
    assert chosen(known) - usual == {pair for pair in every_pair() if pair[1] == "tab"} - usual


before = due._of_kind


@pytest.mark.parametrize(("fate", "wanted"), [(Fate.CHANGED, ""), (Fate.EXACT, Fate.CHANGED), (Fate.UNAVAILABLE, "")])
def test_what_did_not_end_as_it_should_or_was_not_tried_stays_due(tmp_path: Path, fate: Fate, wanted: str) -> None:
    all_came_through(tmp_path / "before")
    entry = ENTRIES[0]
    due.keep(tmp_path, entry, [Finding(entry, "tab", fate, wanted), Finding(entry, "comma", Fate.EXACT, "")])
    assert list(due.known(tmp_path)[entry.id]) == ["comma"]


def test_what_is_kept_of_other_pairs_stays_and_a_damaged_file_is_as_none(tmp_path: Path) -> None:
    entry = ENTRIES[0]
    for kind in ("tab", "comma"):
        due.keep(tmp_path, entry, [Finding(entry, kind, Fate.EXACT, "")])
    assert sorted(due.known(tmp_path)[entry.id]) == ["comma", "tab"]
    (tmp_path / f"{entry.id}.json").write_text("{", encoding="utf-8")
    assert due.known(tmp_path) == {}
