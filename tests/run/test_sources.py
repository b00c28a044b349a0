"""Whether figures are of the code that ships: a transport's digest covers its program, not its comments."""

from harness import registry, show
from harness.run import environment

ID = "postgres.psycopg.write_polars_copy_text"
TUNED = registry.one("postgres.psycopg.write_polars_tuned")


def test_a_transport_whose_program_changed_is_named_and_one_whose_docstring_or_comment_did_is_not(monkeypatch):
    ran = {"sources": environment.digests([registry.one(ID)])}
    assert environment.changed([ID], ran) == []
    script = show.body(registry.one(ID))
    for other in (script.replace('"""Send', '"""Other words. Send'), script.replace("\n\n\n", "  # why\n\n\n\n")):
        assert other != script
        monkeypatch.setattr(show, "body", lambda entry, other=other: other)
        assert environment.changed([ID], ran) == []
    for more in ("print(1)", 'print("# 1")'):
        monkeypatch.setattr(show, "body", lambda entry, more=more: f"{script}\n{more}\n")
        assert environment.changed([ID], ran) == [ID]


def test_a_run_that_says_nothing_of_a_transport_has_no_figure_of_its_code():
    assert environment.changed([ID], {}) == [ID]
    assert environment.changed([ID], {"sources": {ID: "another"}}) == [ID]


def test_what_uses_arrow_wire_has_its_sources_in_its_digest_without_their_tests_and_comments(monkeypatch, tmp_path):
    as_it_is = environment.digest(TUNED)
    monkeypatch.setattr(environment, "_WIRE_SOURCES", ())
    assert environment.digest(TUNED) != as_it_is
    zig = tmp_path / "arrow-wire" / "zig"
    zig.mkdir(parents=True)
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "_WIRE_SOURCES", ("zig/*.zig",))
    found = []
    for text, test in (("a();", "b();"), ("    // why\na();", "c();"), ("d();", "b();")):
        (zig / "builders.zig").write_text(text)
        (zig / "builders_test.zig").write_text(test)
        environment._wire.cache_clear()
        found.append(environment.digest(TUNED))
    environment._wire.cache_clear()
    assert found[0] == found[1] != found[2]
