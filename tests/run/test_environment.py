"""The fingerprint of a run's environment: it changes only with facts that make numbers incomparable."""

import copy
import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from harness import registry, show
from harness.datasets import store
from harness.lab import interpreters
from harness.model import Case, Dataset, Experiment, LabError
from harness.report import markdown
from harness.results import environment as identity
from harness.run import environment
from harness.run.plan import Plan
from harness.run.rigs.rig import RunRequest
from harness.run.rigs.stores import StoreRig
from harness.settings import Settings

HERE = Path(__file__).parent
PLAN = Plan("stores", "smoke", "*", (Experiment("equal", "*", "integers", {"rows": [1]}),), 1, 1, 5.0)


def request(**settings):
    """The request for a run whose servers are on the disk of this file."""
    return RunRequest(settings=Settings(state_dir=HERE, **settings), plan=PLAN, rig="stores", lab="embedded")


FACTS = {
    "plan": {"suite": "stores", "size": "smoke", "experiments": [{"parameters": {"rows": [1]}}], "seed": 1},
    "data": [{"name": "integers", "rows": 1, "content_hash": "00"}],
    "lab": "local",
    "servers": {"postgres": {"version": "18.4", "settings": {"work_mem": "4MB"}}},
    "server_filesystem": "ext4",
    "machine": {"cpu": "one", "memory_bytes": 1},
    "python": "3.11.2",
    "packages": {"polars": "2.1.0"},
    "code": {"commit": "abc", "modified": False},
    "measurement": {"clock": "time.monotonic_ns in the worker"},
    "load_average_at_start": [0.1, 0.2, 0.3],
}


def changed(*path, to):
    """The facts with one value changed."""
    facts = copy.deepcopy(FACTS)
    place = facts
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = to
    return facts


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        (changed("plan", "seed", to=2), ["plan"]),
        (changed("plan", "experiments", 0, "parameters", "rows", to=[1, 2]), ["plan"]),
        (changed("data", 0, "content_hash", to="ff"), ["data"]),
        (changed("data", to=[]), ["data"]),
        (changed("lab", to="compose"), ["lab"]),
        (changed("machine", "memory_bytes", to=2), ["machine"]),
        (changed("python", to="3.12.0"), ["python"]),
        (changed("packages", "polars", to="2.1.1"), ["packages"]),
        (changed("packages", to={"polars": "2.1.0", "duckdb": "1.5.5"}), ["packages"]),
        (changed("servers", "postgres", "version", to="18.5"), ["servers"]),
        (changed("servers", to={}), ["servers"]),
        (changed("code", "commit", to="def"), ["code"]),
        (changed("code", "modified", to=True), ["code"]),
        (changed("python", to="3.12.0") | {"machine": {}, "servers": {}}, ["machine", "python", "servers"]),
        (changed("load_average_at_start", to=[9.0, 9.0, 9.0]), []),
        (changed("measurement", "clock", to="said otherwise"), []),
        (changed("servers", "postgres", "settings", to={}), []),
        (changed("server_filesystem", to="xfs"), []),
        (FACTS | {"run_id": "20260101T000000Z-host", "fingerprint": "0" * 12}, []),
        (dict(reversed(FACTS.items())), []),
        (json.loads(json.dumps(FACTS)), []),
    ],
    ids=str,
)
def test_what_makes_numbers_incomparable_and_nothing_else_changes_the_fingerprint_and_is_named(facts, named):
    assert (identity.fingerprint(facts) != identity.fingerprint(FACTS)) == bool(named)
    assert identity.differing(FACTS, facts) == identity.differing(facts, FACTS) == named


@pytest.fixture
def rig(tmp_path):
    data = Dataset("integers", 1, 7, str(tmp_path / "secret-place" / "data.parquet"), "00ff")
    return StoreRig(store.specification("integers"), {1: data}, tmp_path, 5.0)


def test_the_environment_of_a_run_has_all_of_its_identity_and_its_own_fingerprint_and_no_path(rig, tmp_path):
    facts = environment.describe(request(commit="abc"), rig, [])
    assert facts.keys() >= set(identity.IDENTITY)
    assert re.fullmatch(r"[0-9a-f]{12}", facts["fingerprint"])
    assert facts["fingerprint"] == identity.fingerprint(facts)
    assert str(tmp_path) not in json.dumps(facts)
    assert facts == json.loads(json.dumps(facts))
    assert facts["packages"]["polars"]
    assert facts["data"] == [{"name": "integers", "rows": 1, "seed": 7, "content_hash": "00ff"}]
    assert (facts["lab"], facts["servers"]) == ("local", {})
    assert facts["plan"]["experiments"] == [
        {
            "name": "equal",
            "select": "*",
            "dataset": "integers",
            "parameters": {"rows": [1]},
            "origins": [],
            "left_out": [],
        }
    ]


@pytest.mark.long
def test_figures_of_emulated_images_are_marked_with_their_machine_in_every_report(rig):
    facts = environment.describe(request(emulated="amd64 on arm64"), rig, [])
    assert facts["machine"]["cpu"].endswith(" (emulated: amd64 on arm64)")
    assert "(emulated: amd64 on arm64)" in markdown.machine(facts["machine"])
    assert environment.describe(request(), rig, [])["fingerprint"] != facts["fingerprint"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("built_from", "code"),
    [
        ("abc123", {"commit": "abc123", "modified": False}),
        ("abc123-dirty", {"commit": "abc123", "modified": True}),
    ],
)
def test_code_without_a_checkout_is_what_it_was_built_from(rig, built_from, code):
    assert environment.describe(request(commit=built_from), rig, [])["code"] == code


def test_code_in_a_checkout_is_its_commit_and_whether_files_of_it_were_changed(rig, tmp_path, monkeypatch):
    def git(*arguments):
        who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
        done = subprocess.run(("git", *who, *arguments), cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    monkeypatch.setattr(environment, "ROOT", tmp_path)
    git("init", "--quiet")
    (tmp_path / "code.py").write_text("one")
    git("add", "code.py")
    git("commit", "--quiet", "--message", "one")
    commit = git("rev-parse", "HEAD")
    (tmp_path / "runs.csv").write_text("results are not code")
    assert environment.describe(request(), rig, [])["code"] == {"commit": commit, "modified": False}
    (tmp_path / "code.py").write_text("two")
    assert environment.describe(request(), rig, [])["code"] == {"commit": commit, "modified": True}


def test_code_of_nowhere_is_unknown_not_guessed(rig, tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert environment.describe(request(), rig, [])["code"] == {"commit": None, "modified": None}


@pytest.mark.long
def test_every_transport_of_a_run_names_the_packages_it_uses_as_they_are_recorded(rig):
    """By the names of distributions: clickhouse-driver, where the module is clickhouse_driver."""
    facts = environment.describe(request(), rig, [Case(entry, "", "", {}) for entry in registry.select("*")])
    assert facts["uses"].keys() == registry.catalogue().keys()
    assert facts["uses"]["clickhouse.clickhouse_driver.write_polars_columnar"] == ["clickhouse-driver", "polars"]
    for entry in registry.select("*"):
        used = facts["uses"][entry.id]
        assert set(used) <= facts["packages"].keys()
        if own := interpreters.of(entry.requires):
            assert bool(used) == own.exists
            continue
        modules = {part.partition(".")[0] for part in entry.requires} - sys.stdlib_module_names
        assert bool(used) == any(find_spec(name) for name in modules)  # of an engine that is not installed none


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


@pytest.mark.parametrize("changed", ["src/arrow_wire/frames.py", "src/arrow_wire/another.py", "zig/library.zig"])
def test_a_run_needs_the_arrow_wire_of_its_checkout(changed, monkeypatch, tmp_path):
    shutil.copytree(environment.ROOT / "arrow-wire" / "src", tmp_path / "arrow-wire" / "src")
    shutil.copytree(environment.ROOT / "arrow-wire" / "zig", tmp_path / "arrow-wire" / "zig")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    environment.require_current_wire()
    with (tmp_path / "arrow-wire" / changed).open("a") as file:
        file.write("\n")
    with pytest.raises(LabError, match="from other sources than those of this checkout; make install"):
        environment.require_current_wire()
