"""Whether figures are of the code that ships: a transport's digest covers its program, not its comments."""

import json
from dataclasses import replace

from harness import registry, show
from harness.docs import sources

ID = "postgres.psycopg.write_polars_copy_text"


def test_a_transport_whose_program_changed_is_named_and_one_whose_docstring_did_is_not(tmp_path, monkeypatch):
    sources.write(tmp_path, [ID])
    assert sources.changed([ID], tmp_path) == []
    script = show.body(registry.one(ID))
    monkeypatch.setattr(show, "body", lambda entry: script.replace('"""Send', '"""Other words. Send'))
    assert sources.changed([ID], tmp_path) == []
    monkeypatch.setattr(show, "body", lambda entry: f"{script}\nprint(1)\n")
    assert sources.changed([ID], tmp_path) == [ID]


def test_a_run_that_says_nothing_of_a_transport_has_no_figure_of_its_code(tmp_path):
    assert sources.changed([ID], tmp_path) == [ID]
    (tmp_path / sources.FILE).write_text(json.dumps({ID: "another"}))
    assert sources.changed([ID], tmp_path) == [ID]


def test_what_uses_arrow_wire_has_its_sources_in_its_digest(monkeypatch):
    tuned = registry.one("postgres.psycopg.write_polars_tuned")
    before = sources.digest(tuned)
    monkeypatch.setattr(sources, "_WIRE_SOURCES", ())
    assert sources.digest(tuned) != before
    assert sources.digest(replace(tuned)) == sources.digest(tuned)
