"""`lab report` reads every environment that `lab compare` reads, with missing or further facts of other versions."""

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from harness import report
from harness.model import LabError
from harness.report import comparing, recommendation
from harness.results import folder as folders
from harness.settings import ROOT
from tests.report.cases import environment, row, run_folder, suite

# All facts that an environment may have; a few names and versions suffice.
OF_REFERENCE = folders.environment(folders.reference(ROOT / "results", "matrix"))
FACTS = OF_REFERENCE | environment(plan=OF_REFERENCE["plan"] | {"suite": "example"}, machine=OF_REFERENCE["machine"])
FACTS |= {name: dict(list(OF_REFERENCE[name].items())[:2]) for name in ("packages", "uses")}


def places(facts: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every entry of an environment, and every entry of those, down to single facts."""
    for name in facts if isinstance(facts, dict) else range(len(facts)):
        yield (*above, name)
        if isinstance(facts[name], dict | list):
            yield from places(facts[name], (*above, name))


def changed(place: tuple[Any, ...], value: Any = None, gone: bool = False) -> dict[str, Any]:
    facts = copy.deepcopy(FACTS)
    *above, name = place
    found: Any = facts
    for part in above:
        found = found[part]
    if gone:
        del found[name]
    else:
        found[name] = value
    return facts


CHANGES = [(place, of) for place in places(FACTS) if len(place) < 4 for of in ({"gone": True}, {"value": None})]


@pytest.mark.long
def test_what_compare_reads_report_reads(tmp_path):
    rows = [row("a", seconds=1.0)]
    refused = []
    for place, of in CHANGES:
        folder = run_folder(tmp_path / "run", rows, changed(place, **of))
        try:
            run = folders.read(folder)
            comparing.compared(suite(), run, run, anyway=True)
        except Exception:
            continue
        try:
            report.write(folder, suite())
        except Exception as error:
            refused.append((place, of, repr(error)))
    assert "\n".join(map(str, refused)) == ""
    assert len(CHANGES) > 100


def test_what_neither_can_go_without_is_asked_for_by_name(tmp_path):
    """No change of an environment causes a traceback of `lab compare`."""
    rows, wrong = [row("a", seconds=1.0)], []
    for place in (place for place in places(FACTS) if len(place) == 1):
        folder = run_folder(tmp_path / "run", rows, changed(place, gone=True))
        try:
            with suppress(LabError):
                run = folders.read(folder)
                comparing.compared(suite(), run, run, anyway=True)
        except Exception as error:
            wrong.append((place, repr(error)))
    assert wrong == []


@pytest.mark.parametrize("text", ["{}", "", '{"fastest": 3}'])
def test_a_race_whose_recommendation_is_of_another_version_is_reported_from_its_rows(tmp_path, text):
    folder = run_folder(tmp_path / "run", [row("a", seconds=1.0)], FACTS)
    (folder / recommendation.FILE).write_text(text)
    written = report.write(folder, suite())
    assert [one.transport for one in written.summaries] == ["a"]
    assert str(folder / recommendation.FILE) in written.unread
    assert written.unread.endswith("made of the rows of the race alone")
    with pytest.raises(LabError, match=recommendation.FILE):
        recommendation.read(folder)
    assert json.loads((folder / "environment.json").read_text()) == FACTS
