"""The words of the lab: the right fates of values, and the key that identifies a run."""

import pytest

from harness import registry
from harness.model import OR, Case, Fate, Finding, Run

WAY = registry.one("postgres.psycopg.write_polars_copy_text")
COMES_THROUGH = {Fate.EXACT, Fate.CONVERTED}


@pytest.mark.parametrize(
    ("wanted", "right"),
    [
        ("", COMES_THROUGH),
        *((str(fate), {fate}) for fate in (Fate.CHANGED, Fate.REFUSED, Fate.HANGS, Fate.CRASHES)),
        (OR.join((Fate.REFUSED, Fate.EXACT)), {Fate.REFUSED, Fate.EXACT}),
    ],
)
def test_a_fate_is_as_wanted_where_it_is_declared_and_otherwise_where_values_come_through(wanted, right):
    """A pair that was not tried refutes nothing; one that the reference client cannot verify is never right."""
    found = {fate for fate in Fate if Finding(WAY, "one_row", fate, wanted).as_wanted}
    assert found == right | {Fate.UNAVAILABLE}


def test_a_case_is_labelled_with_its_parameters_and_a_run_known_by_case_and_pass():
    case = Case(WAY, "growing", "integers", {"files": 8, "page_cache": "warm"})
    assert case.label == "files=8; page_cache=warm"
    assert Run(case, 2, 17).key == (WAY.id, "growing", "files=8; page_cache=warm", 2)
    assert Run(case, 2, 18).key == Run(case, 2, 17).key
