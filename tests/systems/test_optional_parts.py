"""A database package may lack some modules: a call that needs one names the missing file."""

import importlib.util
import re

import pytest

from harness.model import LabError
from harness.systems import SYSTEMS, system


@pytest.mark.parametrize("part", system.OPTIONAL)
def test_a_room_without_a_part_that_it_may_go_without_says_so_where_it_is_asked_for(part, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for of in SYSTEMS.values():
        said = f"harness/systems/{of.name}/{part}.py is missing: {system.OPTIONAL[part]}"
        assert of.lacks(part) == said
        with pytest.raises(LabError, match=re.escape(said)):
            getattr(of, part)
