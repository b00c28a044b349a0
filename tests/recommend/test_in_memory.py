"""The recommendation for a frame in memory, as a notebook asks for it, and for the rows of a query."""

from decimal import Decimal
from pathlib import Path

import pandas as pd
import psycopg
import pytest

from harness.model import LabError
from harness.recommend import recommend
from harness.report import recommendation
from tests.commands import Command
from tests.scripts import Scripts


@pytest.fixture
def settings_of_lab(on_embedded_lab: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in on_embedded_lab.items():
        if name.startswith("LAB_"):
            monkeypatch.setenv(name, value)
    return on_embedded_lab


@pytest.mark.long
@pytest.mark.alone
def test_a_frame_in_memory_has_a_recommendation_that_shows_itself(settings_of_lab: dict[str, str]) -> None:
    frame = pd.DataFrame({"who": ["a", None, "<b>"], "paid": [1.5, float("nan"), 2.25], "n": [1, 2, 3]})
    found = recommend(frame, to="postgres", style="async", external=True, budget=100.0)
    assert (found.frame, found.operation, found.rows) == ("pandas", "write", 3)
    assert found.columns == {"who": "text", "paid": "float64", "n": "int64"}
    assert "nulls" in found.values
    assert found.compared == "every value, with the frame that was given"
    shown = found._repr_html_()
    assert found.fastest.transport in shown
    assert "<th>transport</th>" in shown
    stored = recommendation.read(Path(settings_of_lab["LAB_RESULTS_DIR"]) / found.run_id)
    assert stored == found


@pytest.mark.parametrize(
    ("frame", "asked", "said"),
    [
        ([1, 2], {"to": "postgres"}, r"expected a DataFrame of pandas or polars, .* found builtins\.list"),
        (pd.DataFrame({"a": [1]}), {}, "choose one direction"),
        (pd.DataFrame({"a": []}), {"to": "postgres"}, "expected at least one row"),
        (
            pd.DataFrame({"a": [1, "x"]}),
            {"to": "postgres"},
            r"column \"a\": expected values of one type that Arrow has, found others",
        ),
    ],
)
def test_what_cannot_be_recommended_is_said_in_one_line(
    settings_of_lab: dict[str, str], frame: object, asked: dict[str, str], said: str
) -> None:
    with pytest.raises(LabError, match=said):
        recommend(frame, **asked)


@pytest.mark.long
@pytest.mark.alone
def test_the_script_of_a_query_runs_as_it_stands(
    lab: Command, on_embedded_lab: dict[str, str], scripts: Scripts, tmp_path: Path
) -> None:
    address, script = on_embedded_lab["LAB_POSTGRES_URI"], tmp_path / "winner.py"
    query = "SELECT n, n::numeric / 4 AS part FROM generate_series(1, 50) n"
    asked = ("--query", query, "--to", "postgres", "--style", "async", "--external", "--budget", "100")
    done = lab("recommend", *asked, "--script", str(script), "--table", "copied", env=on_embedded_lab)
    assert done.returncode == 0, done.stderr
    ended = scripts.run(script, variables={"LAB_POSTGRES_URI": address})
    assert (ended.status, ended.out) == (0, "50 rows written\n"), ended.err
    with psycopg.connect(address, autocommit=True) as connection:
        found = connection.execute("SELECT count(*), sum(n), sum(part) FROM copied").fetchone()
        connection.execute("DROP TABLE copied")
    assert found == (50, 1275, Decimal("318.75"))


@pytest.mark.long
@pytest.mark.alone
def test_the_rows_of_a_query_are_the_data(lab: Command, on_embedded_lab: dict[str, str]) -> None:
    address = on_embedded_lab["LAB_POSTGRES_URI"]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE asked AS SELECT n, n::numeric / 4 AS part, 'é ' || n AS text FROM generate_series(1, 50) n"
        )
        query = "SELECT n, part, text, gen_random_uuid() AS id, now() AS moment FROM asked"
        done = lab(
            *("recommend", "--query", query, "--from", "postgres", "--style", "async", "--external", "--budget", "100"),
            env=on_embedded_lab,
        )
        connection.execute("DROP TABLE asked")
    assert done.returncode == 0, done.stderr
    (folder,) = Path(on_embedded_lab["LAB_RESULTS_DIR"]).glob("2*")
    found = recommendation.read(folder)
    assert found is not None
    assert (found.rows, found.operation) == (50, "read")
    assert found.compared == "every value, by a round trip of the answer of the query, which was asked once"
    for said in (done.stdout, (folder / "report.html").read_text()):
        assert f"compared{':' if said is done.stdout else ' before the run:'} {found.compared}" in said
    assert found.columns == {
        "n": "int32",
        "part": "decimal(38, 20)",
        "text": "text",
        "id": "uuid",
        "moment": "timestamp_tz",
    }
    # Of these transports none gives UUIDs and instants as such: what is the fastest is said to be converted.
    assert found.fastest.values.startswith("converted: ")
    assert "No transport gives the canonical types. Here converted: " in done.stdout
