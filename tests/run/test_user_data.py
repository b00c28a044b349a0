"""`lab run` on a user's own data: the whole matrix on a file or a query, skipped transports, resuming, secrets."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import polars as pl
import psycopg
import pytest
from adbc_driver_manager import AdbcStatusCode, ProgrammingError

from harness.datasets.user_data import data
from harness.datasets.user_data.mark import FILE as KEY_FILE
from harness.lab.embedded import EmbeddedLab
from harness.lab.reference import References
from harness.lab.tables import Tables
from harness.model import LabError, Status
from harness.results import runs_csv
from harness.run.redaction import of_types, without_values
from harness.systems import SYSTEMS
from harness.systems.postgres import characters
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


COLUMNS = ["name", "amount paid"]
KEPT_BACK = "(its words may have values in them, and are not kept)"


@pytest.mark.parametrize(
    ("status", "error", "told"),
    [
        (Status.ERROR, "DataError: invalid input 'Smith' for name", f'DataError, about column "name" {KEPT_BACK}'),
        (Status.ERROR, "DataError: invalid input 'Smith'", f"DataError {KEPT_BACK}"),
        (Status.ERROR, "after the run: psycopg.Error: Smith", f"psycopg.Error {KEPT_BACK}"),
        (Status.ERROR, "Smith owes 12", f"an error {KEPT_BACK}"),
        (Status.ERROR, "ValueError: 12 of names", f"ValueError {KEPT_BACK}"),
        (Status.MISMATCH, "amount paid: 3 of 100 values differ", "amount paid: 3 of 100 values differ"),
        (
            Status.MISMATCH,
            "name: String does not convert to int64: conversion from `str` failed for value 'Smith'",
            "name: String does not convert to int64",
        ),
        (Status.MISMATCH, "expected 3 rows, found 2", "expected 3 rows, found 2"),
        (Status.MISMATCH, "Smith differs", f"an error {KEPT_BACK}"),
        *(
            (Status.ERROR, error, f"{error.partition(':')[0]} {KEPT_BACK}")
            for error in (
                'DataError: invalid input syntax for type integer: "Smith"',
                'DataError: byte sequence 0xc5 0x81 in encoding "UTF8" has no equivalent in encoding "LATIN1"',
                "DatabaseError: Cannot parse string 'Smith' as Int32",
            )
        ),
        (Status.TIMEOUT, "ended after the time limit of 10 s", "ended after the time limit of 10 s"),
        (
            Status.ERROR,
            "QueryCanceled: canceling statement due to statement timeout CONTEXT:  COPY own, line 1: Smith",
            "QueryCanceled: canceling statement due to statement timeout",
        ),
        (
            Status.ERROR,
            "a.ProgramLimitExceeded: row is too big: size 16224, maximum size 8160 CONTEXT: COPY own, line 4, Smith",
            "a.ProgramLimitExceeded: row is too big: size 16224, maximum size 8160",
        ),
        (
            Status.ERROR,
            'NotNullViolation: null value in column "id" of relation "own" violates not-null constraint DETAIL: Smith',
            'NotNullViolation: null value in column "id" of relation "own" violates not-null constraint',
        ),
        (
            Status.ERROR,
            "DatabaseError: Code: 190. DB::Exception: Elements 'a.x' and 'a.y' of Nested data structure 'a' (Array "
            "columns) have different array sizes (3 and 0). Smith",
            "DatabaseError: Elements 'a.x' and 'a.y' of Nested data structure 'a' (Array columns) have different array "
            "sizes",
        ),
        (
            Status.ERROR,
            "ServerException: Code: 159. DB::Exception: Timeout exceeded: elapsed 5.1 seconds, maximum: 5: Smith",
            "ServerException: Timeout exceeded: elapsed 5.1 seconds, maximum: 5",
        ),
    ],
)
def test_only_the_labs_own_words_are_kept(status: Status, error: str, told: str) -> None:
    assert without_values(status, error, COLUMNS) == told
    assert "Smith" not in without_values(status, error, COLUMNS)


UNDECLARED = {"waited": "duration", "opens": "time"}


@pytest.mark.parametrize(
    ("status", "error", "undeclared", "told"),
    [
        (Status.ERROR, "TypeError: no waited of Smith", UNDECLARED, 'duration (column "waited"): TypeError'),
        (Status.ERROR, "a.Error: Smith opens", UNDECLARED, 'time (column "opens"): a.Error'),
        (
            Status.ERROR,
            "a.Error: Smith",
            {**UNDECLARED, "slept": "duration"},
            'duration (column "waited" and 1 more) or time (column "opens"): a.Error',
        ),
        (
            Status.MISMATCH,
            "waited: String does not convert to duration: Smith",
            UNDECLARED,
            'duration (column "waited"): it came as String',
        ),
    ],
)
def test_a_client_that_fails_at_types_that_none_declares_is_unsupported_and_none_of_its_words_are_kept(
    status: Status, error: str, undeclared: dict[str, str], told: str
) -> None:
    assert of_types(status, error, undeclared) == (Status.UNSUPPORTED, told)


@pytest.mark.parametrize(
    ("status", "error", "undeclared"),
    [
        (Status.ERROR, "TypeError: Smith", {}),
        (Status.ERROR, "the worker ended with exit code 1 and no answer", UNDECLARED),
        (Status.ERROR, "OSError: No space left on device", UNDECLARED),
        (Status.KILLED, "the worker was killed by SIGSEGV", UNDECLARED),
        (Status.MISMATCH, "name: String does not convert to int64", UNDECLARED),
        (Status.MISMATCH, "waited: Float64 changes values when converted to duration", UNDECLARED),
        (Status.MISMATCH, "waited: 1 of 2 values differ", UNDECLARED),
        (
            Status.ERROR,
            "a.ProgramLimitExceeded: row is too big: size 16224, maximum size 8160",
            {"words": "array(text)"},
        ),
    ],
)
def test_what_is_not_about_such_types_stays_as_it_is(status: Status, error: str, undeclared: dict[str, str]) -> None:
    assert of_types(status, error, undeclared) == (status, error)


LONG = "longer than the eight bytes that a pointer to it takes, thrice " * 3


def refusal(system: str, endpoints: dict[str, str], frame: pl.DataFrame, folder: Path) -> str:
    """Return the message about a frame; empty if the server takes it."""
    own = data.from_frame(frame)
    dataset, warmup = (own.dataset(folder, min(rows, own.rows), bytes(32)) for rows in (own.rows, 1_000))
    tables = Tables(References(endpoints), own.specification, dataset, warmup)
    try:
        tables.require_held(system)
    except LabError as error:
        return str(error)
    finally:
        assert tables.references.close(tables.drop) == []
    return ""


@pytest.mark.long
@pytest.mark.parametrize(
    ("system", "frame", "said"),
    [
        (
            "postgres",
            pl.DataFrame({"id": [1], "ctid": [2]}),
            'postgres refuses a table of these columns: column name "ctid" conflicts with a system column name',
        ),
        (
            "postgres",
            pl.DataFrame({f"c{number}": [LONG] for number in range(900)}),
            "postgres refuses these rows: row is too big: size 16224, maximum size 8160",
        ),
        (
            "clickhouse",
            pl.DataFrame({"_row_exists": [1]}),
            "clickhouse refuses a table of these columns: Cannot create table with column '_row_exists' for MergeTree",
        ),
        (
            "clickhouse",
            pl.DataFrame({"id": [1, 2], "a.x": [[1], [1]], "a.y": [[1], [1, 2]], "b.z": [[], []]}),
            'column "a.y", row 1: ClickHouse takes "a.x" and "a.y" for parts of one Nested "a", whose lists have one '
            "length in a row; rename one",
        ),
    ],
)
def test_what_no_transport_could_write_is_refused_with_the_reason(
    embedded_lab: EmbeddedLab, system: str, frame: pl.DataFrame, said: str, tmp_path: Path
) -> None:
    assert refusal(system, embedded_lab.endpoints, frame, tmp_path).startswith(said)


@pytest.mark.parametrize(
    ("system", "frame"),
    [
        ("postgres", pl.DataFrame({"oid": [1], "tableoid_": [2], "user": ["a"]})),
        ("clickhouse", pl.DataFrame({"a.x": [[1], []], "a.y": [[2], []], "b.x": [[], [1]], "a.n": [1, 2]})),
    ],
)
def test_what_a_server_takes_is_not_refused(
    embedded_lab: EmbeddedLab, system: str, frame: pl.DataFrame, tmp_path: Path
) -> None:
    assert refusal(system, embedded_lab.endpoints, frame, tmp_path) == ""


def test_a_category_that_a_database_of_another_encoding_lacks_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"a": ["x", "Łódź"]}, {"a": pl.Categorical}).write_parquet(path)

    def ask(statement: str) -> list[tuple[str]]:
        if "convert_from" in statement:
            raise ProgrammingError("no equivalent", status_code=AdbcStatusCode.INVALID_DATA, sqlstate="22P05")
        return [("LATIN1",)]

    with pytest.raises(LabError, match='column "a", row 1: the database is in LATIN1'):
        characters.require_held(ask, path, {"a": "category"})


@pytest.fixture
def apart(embedded_lab: EmbeddedLab) -> Iterator[dict[str, str]]:
    """The endpoints of a lab whose Postgres database is its own, for triggers and settings."""
    uri = embedded_lab.endpoints["postgres"]
    with psycopg.connect(uri, autocommit=True) as server:
        server.execute("CREATE DATABASE refusing")
        try:
            yield {**embedded_lab.endpoints, "postgres": urlunsplit(urlsplit(uri)._replace(path="/refusing"))}
        finally:
            server.execute("DROP DATABASE refusing WITH (FORCE)")


def on_create_table(endpoints: dict[str, str], body: str) -> None:
    with psycopg.connect(endpoints["postgres"], autocommit=True) as server:
        server.execute(
            f"CREATE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN {body}; END $$;"  # type: ignore[arg-type]
            "CREATE EVENT TRIGGER watch ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION watch()"
        )


def test_a_rule_of_the_house_is_reported_in_its_own_words(apart: dict[str, str], tmp_path: Path) -> None:
    on_create_table(apart, "RAISE EXCEPTION 'tables are made by the release team alone'")
    said = refusal("postgres", apart, pl.DataFrame({"id": [1]}), tmp_path)
    assert said == "postgres refuses a table of these columns: tables are made by the release team alone"


@pytest.mark.long
def test_a_timeout_of_statements_says_so(apart: dict[str, str], tmp_path: Path) -> None:
    on_create_table(apart, "PERFORM pg_sleep(60)")
    with psycopg.connect(apart["postgres"], autocommit=True) as server:
        server.execute("ALTER DATABASE refusing SET statement_timeout = '2s'")
    said = refusal("postgres", apart, pl.DataFrame({"id": [1]}), tmp_path)
    assert said == "postgres refuses a table of these columns: canceling statement due to statement timeout"
