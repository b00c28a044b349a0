"""`lab run` on a user's own data: the whole matrix on a file or a query, skipped transports, and resuming."""

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import psycopg
import pytest

from harness.datasets.user_data.mark import FILE as KEY_FILE
from harness.model import Status
from harness.results import runs_csv
from harness.systems import SYSTEMS
from tests.commands import Command, refused, succeeded
from tests.typed import typed

WRITE, READ = "postgres.psycopg.write_polars_copy_text_format", "clickhouse.urllib.read_polars_parquet"
LOSES_NULLS = "clickhouse.urllib.read_polars_csv"
BOUND = "machine.memory.copy_bytes"  # of no database, and part of a run without --only
FRAME = pl.DataFrame({"id": [3, 1, 2], "secret name": ["Smith of Elm", None, "Jones"]})


def asked(file: Path, *ids: str) -> tuple[str, ...]:
    only = ("--only", ",".join(ids), "--experiment", "matrix")
    return "run", "--data", str(file), "--passes", "1", "--external", *only


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.parquet"
    FRAME.write_parquet(path)
    return path


def results(environment: dict[str, str]) -> Path:
    (folder,) = Path(environment["LAB_RESULTS_DIR"]).glob("2*")
    return folder


@pytest.mark.long  # four commands
def test_a_run_moves_a_file_out_and_in_skips_transports_that_lose_a_value_and_goes_on_with_the_same_data(
    lab: Command, on_embedded_lab: dict[str, str], file: Path
) -> None:
    done = succeeded(lab(*asked(file, WRITE, READ, LOSES_NULLS, BOUND), "--key", "id", env=on_embedded_lab))
    assert "\n3 runs of 3 transports, size default, 1 pass\n" in done.stdout
    assert f"skipped: {LOSES_NULLS}: changed: " in done.stdout
    folder = results(on_embedded_lab)
    rows = {row.transport: row for row in runs_csv.load(folder / "runs.csv")}
    assert {name: row.status for name, row in rows.items()} == {
        WRITE: Status.OK,
        READ: Status.OK,
        BOUND: Status.OK,
        LOSES_NULLS: Status.UNSUPPORTED,
    }
    assert '(column "secret name")' in rows[LOSES_NULLS].error
    assert {row.rows for row in rows.values() if row.ok} == {3}
    (known,) = json.loads((folder / "environment.json").read_text())["data"]
    assert known["columns"] == {"id": "int64", "secret name": "text?"}
    assert (Path(on_embedded_lab["LAB_STATE_DIR"]) / KEY_FILE).is_file()

    before = (folder / "runs.csv").read_text().splitlines(keepends=True)
    (folder / "runs.csv").write_text("".join(before[:-1]))
    again = ("run", "--resume", folder.name)
    assert "is on your own data: name these again (--data, --query)" in refused(lab(*again, env=on_embedded_lab))
    other = file.with_name("other.parquet")
    FRAME.head(2).write_parquet(other)
    assert "made in another environment" in refused(lab(*again, "--data", str(other), env=on_embedded_lab))
    succeeded(lab(*again, "--data", str(file), "--key", "id", env=on_embedded_lab))
    assert len(runs_csv.load(folder / "runs.csv")) == 4


@pytest.fixture
def people(on_embedded_lab: dict[str, str]) -> Iterator[str]:
    """A table that a user asks about."""
    with psycopg.connect(on_embedded_lab["LAB_POSTGRES_URI"], autocommit=True) as connection:
        connection.execute("CREATE TABLE people AS SELECT 7 AS income, 'Smith of Elm' AS name")
        yield "people"
        connection.execute("DROP TABLE people")


@pytest.mark.long
def test_a_query_is_the_data_and_without_names_no_result_has_any(
    lab: Command, on_embedded_lab: dict[str, str], people: str
) -> None:
    query = ("--query", f"SELECT income, name FROM {people}", "--query-from", "postgres", "--no-names")
    command = [part for part in asked(Path(), WRITE) if part not in ("--data", ".")]
    succeeded(lab(*command, *query, env=on_embedded_lab))
    folder = results(on_embedded_lab)
    (row,) = runs_csv.load(folder / "runs.csv")
    assert (row.status, row.fidelity, row.rows) == (Status.OK, "exact", 1)
    (known,) = json.loads((folder / "environment.json").read_text())["data"]
    assert known["columns"] == {"column_1": "int32", "column_2": "text"}
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        content = path.read_text(errors="replace")
        assert not [word for word in ("income", "Smith") if word in content], path


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_transport_moves_types_that_few_know_or_says_that_it_does_not(
    lab: Command, on_embedded_lab: dict[str, str], tmp_path: Path, system: str
) -> None:
    file = tmp_path / "typed.parquet"
    typed(system, 50).write_parquet(file)
    done = lab(*asked(file, f"{system}.*"), env=on_embedded_lab)
    assert "Traceback" not in done.stdout + done.stderr
    rows = {row.transport: row for row in runs_csv.load(results(on_embedded_lab) / "runs.csv")}
    assert {row.status for row in rows.values()} <= {Status.OK, Status.MISMATCH, Status.UNSUPPORTED, Status.UNAVAILABLE}
    tuned = {name for name in rows if name.endswith(("polars_tuned", "pandas_tuned"))}
    assert len(tuned) == 4
    assert {rows[name].status for name in tuned} == {Status.OK}


@pytest.mark.long
def test_what_the_server_refuses_is_said_before_a_transport_runs_and_before_more_time_is_asked_for(
    lab: Command, on_embedded_lab: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "hidden.parquet"
    FRAME.rename({"id": "ctid"}).write_parquet(file)
    said = refused(
        lab("recommend", "--data", str(file), "--to", "postgres", "--external", "--budget", "5", env=on_embedded_lab)
    )
    assert said == (
        'lab: postgres refuses a table of these columns: column name "ctid" conflicts with a system column name'
    )
    assert not list(Path(on_embedded_lab["LAB_RESULTS_DIR"]).glob("2*"))
