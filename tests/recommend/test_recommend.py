"""`lab recommend` and `recommend()` as a user sees them: the screen, the files, the script, refusals."""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from statistics import geometric_mean, median
from types import SimpleNamespace

import pandas as pd
import polars as pl
import psycopg
import pytest

from benchmarks.replay import race, record_of
from harness import registry
from harness.datasets.examples import example
from harness.datasets.user_data import data
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import LabError, Operation
from harness.recommend import recommend, script
from harness.recommend.budget import BUDGET
from harness.recommend.race import LAST_PASSES, MOST_PASSES
from harness.recommend.racing import TAIL_SECONDS
from harness.recommend.script import Source
from harness.report import recommendation
from harness.report.summary import EXACT
from harness.results import runs_csv
from harness.systems import SYSTEMS
from tests.commands import Command, environment_below, refused, succeeded
from tests.recommend.test_programs import rich
from tests.report.test_recommendation import FASTEST, PGPQ
from tests.scripts import Scripts
from tests.typed import typed

PERSON = "Smith of 7 Elm Street"
RACE = ("--to", "postgres", "--style", "async", "--external", "--budget", "120", "--key", "order_id")


class Raced:
    """A race over 600 orders, one with a secret note: the output, and the folder of all files."""

    def __init__(self, folder: Path, lab: Command, embedded: EmbeddedLab) -> None:
        self.folder, self.lab = folder, lab
        self.data, self.script = folder / "orders.parquet", folder / "winner.py"
        orders = example("orders", 600, 1)
        self.orders = orders.with_columns(note=pl.Series([PERSON, *orders["note"][1:]]))
        self.orders.write_parquet(self.data)
        self.environment = environment_below(folder, folder / "datasets") | {
            f"LAB_{address.setting.upper()}": embedded.endpoints[address.name]
            for system in SYSTEMS.values()
            for address in system.addresses
        }
        self.done = self.run("--data", str(self.data), *RACE, "--script", str(self.script), "--share")
        (self.results,) = (folder / "results").glob("2*")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.lab("recommend", *arguments, env=self.environment)


@pytest.fixture(scope="module")
def raced(tmp_path_factory: pytest.TempPathFactory, lab: Command, embedded_lab: EmbeddedLab) -> Raced:
    return Raced(tmp_path_factory.mktemp("raced"), lab, embedded_lab)


@pytest.mark.long
@pytest.mark.alone
def test_the_screen_names_the_fastest_and_the_next(raced: Raced) -> None:
    assert raced.done.returncode == 0, raced.done.stderr
    screen = raced.done.stdout
    for choice in ("Take ", "pip install", "fastest", "from PyPI", "least code", "default", "server alone"):
        assert choice in screen
    assert re.search(
        r"^polars to Postgres \S+ \(external\): orders\.parquet, 600 rows × 10 columns$", screen, re.MULTILINE
    )
    assert re.search(r"^lab: external \(.*\); (.* and )?600 rows of your data$", screen, re.MULTILINE)
    assert f"Script: {raced.script} (" in screen
    assert re.search(r"\| asyncpg \w+ \| [\d.]+ s \|", screen)
    assert re.search(r"^> Every value compared; .*`lab recommend --data FILE --to postgres", screen, re.MULTILINE)


@pytest.mark.long
@pytest.mark.alone
def test_ctrl_c_prints_what_is_known_so_far_and_how_to_go_on(raced: Raced, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "harness.cli", "recommend", "--data", str(raced.data), *RACE)
    environment = raced.environment | {"LAB_RESULTS_DIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as racing:
        for line in racing.stdout:
            if "pass 2, " in line:
                os.kill(racing.pid, signal.SIGINT)
                break
        said = racing.stdout.read()
    (folder,) = tmp_path.glob("2*")
    assert racing.returncode == 130
    assert "Take asyncpg " in said
    assert "Not final: you stopped the race; figures are of " in said
    assert f"recommend --resume {folder.name} and the same --data" in said
    assert (folder / "report.html").is_file()
    done = succeeded(raced.lab("recommend", "--data", str(raced.data), *RACE, "--resume", folder.name, env=environment))
    assert "you stopped the race" not in done.stdout


@pytest.mark.long
@pytest.mark.alone
def test_every_run_of_the_race_is_a_row_and_the_file_agrees_with_them(raced: Raced) -> None:
    rows = runs_csv.load(raced.results / "runs.csv")
    found = recommendation.read(raced.results)
    of_winner = [row for row in rows if row.transport == found.fastest.transport]
    assert len(of_winner) == found.fastest.runs
    assert LAST_PASSES <= found.fastest.runs <= MOST_PASSES
    assert all(row.ok and row.fidelity == "exact" for row in of_winner)
    assert {row.style for row in rows} == {"async"}
    assert found.seconds < 120
    assert found.fastest.seconds == median(row.took for row in of_winner)
    assert found.fastest.range == (min(row.took for row in of_winner), max(row.took for row in of_winner))
    assert found.columns["net"] == "decimal(12, 2)"
    assert found.values["newline"] == ("note",)
    assert {one.transport for one in found.ruled_out}.isdisjoint({found.fastest.transport, *found.ties})
    assert "its style is sync" in {one.reason for one in found.ruled_out}


@pytest.mark.long
@pytest.mark.alone
def test_nothing_of_the_data_is_left_but_names_types_and_counts_in_results(raced: Raced) -> None:
    kept = [path for path in raced.results.rglob("*") if path.is_file()]
    assert {"runs.csv", "environment.json", "recommendation.json", "report.html"} <= {path.name for path in kept}
    ids = [str(value).encode() for value in raced.orders["order_id"][:50]]
    for path in kept:
        content = path.read_bytes()
        assert PERSON.encode() not in content, path
        assert not [value for value in ids if value in content], path
    assert "note" in (raced.results / "environment.json").read_text()
    assert list((raced.results / "logs").iterdir()) == []
    with psycopg.connect(raced.environment["LAB_POSTGRES_URI"]) as connection:
        left = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename LIKE 'own%%'"
        assert connection.execute(left, [namespace()]).fetchall() == []


@pytest.mark.long
@pytest.mark.alone
def test_the_script_runs_as_it_is_and_writes_every_value(raced: Raced) -> None:
    address = raced.environment["LAB_POSTGRES_URI"]
    variables = {"LAB_POSTGRES_URI": address, "PATH": os.environ["PATH"]}
    succeeded(
        subprocess.run(
            (sys.executable, str(raced.script)),
            env=variables,
            cwd=raced.folder,
            capture_output=True,
            text=True,
            timeout=60,
        )
    )
    with psycopg.connect(address, autocommit=True) as connection:
        rows = connection.execute("SELECT order_id, net, state, note FROM orders ORDER BY order_id").fetchall()
        connection.execute("DROP TABLE orders")
    assert rows == raced.orders.select("order_id", "net", pl.col("state").cast(pl.String), "note").rows()


@pytest.mark.long
@pytest.mark.alone
def test_the_report_opens_with_the_same_screen_also_when_made_again(raced: Raced) -> None:
    done = raced.lab("report", str(raced.results), env=raced.environment)
    found = recommendation.read(raced.results)
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, (raced.results / "report.md").read_text(), (raced.results / "report.html").read_text()):
        assert "(external): orders.parquet, 600 rows × 10 columns" in text
        assert found.fastest.transport in text
    lines = (raced.results / "report.md").read_text().splitlines()
    assert re.match(r"# polars to Postgres \S+ \(external\): orders\.parquet, 600 rows × 10 columns", lines[0])
    assert lines[2] == "![How long each direction takes](pictures/directions.svg)"
    assert not any("\\`" in line or line.startswith("Published figures") for line in lines)
    assert found.compared == "every value, with a second reading"
    for name in ("report.md", "report.html"):
        said = "The data were compared before the run: every value, with a second reading."
        assert said in (raced.results / name).read_text()


@pytest.mark.long
@pytest.mark.alone
def test_a_race_goes_on_where_it_was_stopped(raced: Raced) -> None:
    before = (raced.results / "runs.csv").read_text().splitlines()
    (raced.results / "runs.csv").write_text("\n".join(before[:-5]) + "\n")
    succeeded(raced.run("--data", str(raced.data), *RACE, "--resume", raced.results.name))
    rows = runs_csv.load(raced.results / "runs.csv")
    assert len({row.key for row in rows}) == len(rows)
    kept = (raced.results / "runs.csv").read_text().splitlines()
    assert kept[: len(before) - 5] == before[:-5]
    assert len(rows) >= len(before) - 5  # other times may decide the race a pass sooner or later
    other = raced.folder / "other.parquet"
    raced.orders.head(300).write_parquet(other)
    assert "made in another environment" in refused(
        raced.run("--data", str(other), *RACE, "--resume", raced.results.name)
    )


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--data", "nowhere.parquet", "--to", "postgres"),
            "nowhere.parquet: no such file",
        ),
        (("--data", "{data}"), "choose one direction: --to or --from, with postgres or clickhouse"),
        (("--data", "{data}", "--to", "postgres", "--from", "clickhouse"), "; not both"),
        (
            ("--data", "{data}", "--to", "oracle"),
            '"oracle" is not a database of the lab; choose postgres or clickhouse',
        ),
        (("--data", "{data}", "--to", "postgres", "--frame", "dask"), '--frame "dask": choose pandas or polars'),
        (("--data", "{data}", "--to", "postgres", "--key", "state"), "--key state: not unique"),
        (("--data", "{data}", "--to", "postgres", "--budget", "-1"), "--budget -1: give seconds above 0"),
        (("--data", "{data}", "--to", "postgres", "--max-memory", "much"), '--max-memory "much": give an amount'),
        (
            ("--data", "{data}", "--to", "postgres", "--without", "psycop"),
            'no client or module for --without "psycop". Did you mean "psycopg"? Choose from: ',
        ),
        (("--data", "{data}", "--to", "postgres", "--style", "threads"), '--style "threads": choose one of'),
        (("--data", "{data}", "--to", "postgres", "--rows", "0"), "rows 0: give a whole number"),
        (("--data", "{data}", "--query", "SELECT 1", "--to", "postgres"), "give one of them"),
        (("--query", "SELEC 1", "--to", "postgres"), "postgres refused the query: syntax error at or near"),
        (
            ("--data", "{data}", "--to", "postgres", "--script", "no/such/folder/s.py"),
            "cannot write the script there",
        ),
        (
            ("--query", "SELECT 1", "--from", "postgres", "--script", "s.py"),
            "--script with --query and --from: add --table",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(raced: Raced, arguments: tuple[str, ...], said: str) -> None:
    filled = [argument.format(data=raced.data) for argument in arguments]
    assert said in refused(raced.run(*filled))
    assert len(list((raced.folder / "results").glob("2*"))) == 1


@pytest.mark.long
@pytest.mark.alone
def test_without_data_it_answers_from_a_run_and_says_which(raced: Raced) -> None:
    assert "no run of suite matrix of this machine in" in refused(raced.run())


@pytest.mark.long
@pytest.mark.alone
def test_the_whole_command_ends_within_its_budget_and_says_when_it_will(raced: Raced, lab_process: Command) -> None:
    """The budget covers a race with its own servers, their start and end, and the report."""
    budget, started = 60, time.monotonic()
    asked = ("--data", str(raced.data), "--to", "postgres", "--style", "async", "--budget", str(budget))
    environment = raced.environment | {"LAB_RESULTS_DIR": str(raced.folder / "in_time")}
    done = lab_process("recommend", *asked, env=environment)
    assert time.monotonic() - started <= budget + TAIL_SECONDS
    assert done.returncode == 0, done.stderr
    (folder,) = (raced.folder / "in_time").glob("2*")
    found = recommendation.read(folder)
    assert found.seconds <= budget
    told = [line for line in done.stdout.splitlines() if line.startswith("[ETA ")]
    assert len(told) == len(runs_csv.load(folder / "runs.csv"))
    assert all(re.match(r"\[ETA \d+:\d\d, at most \d+:\d\d\] ", line) for line in told)


@pytest.mark.long
@pytest.mark.alone
def test_a_budget_that_ends_within_the_first_pass_prints_what_is_known_and_of_how_many(
    raced: Raced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(raced.environment, "LAB_RESULTS_DIR", str(raced.folder / "short"))
    done = succeeded(raced.run("--data", str(raced.data), "--to", "postgres", "--external", "--budget", "2"))
    assert re.search(r"^Take .* so far: ", done.stdout, re.MULTILINE)
    assert re.search(r"Not final: the budget of 2 s was used up after \d+ of \d+ transports", done.stdout)
    (folder,) = (raced.folder / "short").glob("2*")
    ran = {row.transport for row in runs_csv.load(folder / "runs.csv") if row.ok}
    assert {one.transport for one in recommendation.read(folder).so_far} == ran
    assert "Known so far, not final" in (folder / "report.md").read_text()


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
    assert "<th>call</th>" in shown
    stored = recommendation.read(Path(settings_of_lab["LAB_RESULTS_DIR"]) / found.run_id)
    assert stored == found


@pytest.mark.parametrize(
    ("frame", "asked", "said"),
    [
        ([1, 2], {"to": "postgres"}, r"builtins\.list is not a frame; give a DataFrame of pandas or polars, "),
        (pd.DataFrame({"a": [1]}), {}, "choose one direction"),
        (pd.DataFrame({"a": []}), {"to": "postgres"}, "the data has no rows"),
        (
            pd.DataFrame({"a": [1, "x"]}),
            {"to": "postgres"},
            r"column \"a\": no type of Arrow holds all these values",
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
def test_the_script_of_a_query_runs_as_it_is(
    lab: Command, on_embedded_lab: dict[str, str], scripts: Scripts, tmp_path: Path
) -> None:
    address, script = on_embedded_lab["LAB_POSTGRES_URI"], tmp_path / "winner.py"
    query = "SELECT n, n::numeric / 4 AS part FROM generate_series(1, 50) n"
    asked = ("--query", query, "--to", "postgres", "--style", "async", "--external", "--budget", "100")
    succeeded(lab("recommend", *asked, "--script", str(script), "--table", "copied", env=on_embedded_lab))
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
    # None of these transports returns UUIDs and timestamps as such types: the fastest is marked as converted.
    assert found.fastest.values.startswith("converted: ")
    assert "No transport gives the canonical types. Here converted: " in done.stdout


RECORDED = Path(__file__).parents[2] / "benchmarks" / "recorded"
RACED_WITHIN = 180.0  # seconds: the budget of the real races that are kept
FOLDERS = sorted(path for path in RECORDED.iterdir() if path.is_dir())


@pytest.mark.long
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_in_95_of_100_races_the_winner_is_within_a_tenth_of_the_best_and_finalists_had_their_passes_in_time(
    folder: Path,
) -> None:
    record = record_of(folder)
    ended = [race(record, seed) for seed in range(100)]
    assert sum(one.factor <= 1.1 and one.enough for one in ended) >= 95, [one.factor for one in ended]
    assert max(one.seconds for one in ended) < BUDGET
    assert sum(one.best == "out" for one in ended) <= 5
    for one in ended:
        times = one.racing.race.told[record.rows]
        assert not one.enough or min(len(times[name]) for name in one.racing.race.contenders) >= LAST_PASSES


@pytest.mark.parametrize(
    "folder", [path for path in FOLDERS if (path / recommendation.FILE).exists()], ids=lambda folder: folder.name
)
def test_the_winner_of_a_real_race_is_within_a_tenth_of_the_best_of_the_recorded_runs(folder: Path) -> None:
    found, record = json.loads((folder / recommendation.FILE).read_text()), record_of(folder)
    of_all_rows = {
        name: geometric_mean([row.took for row in runs if row.ok])
        for (name, rows), runs in record.runs.items()
        if rows == record.rows and all(row.fidelity == EXACT for row in runs)
    }
    assert (found["rows"], found["ended"]) == (record.rows, "")
    assert found["seconds"] < RACED_WITHIN
    assert found["fastest"]["runs"] >= LAST_PASSES
    assert of_all_rows[found["fastest"]["transport"]] <= 1.1 * min(of_all_rows.values())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_race_whose_budget_was_too_short_names_one_that_is_enough(folder: Path) -> None:
    record = record_of(folder)
    short = [race(record, seed, 25.0) for seed in range(10)]
    assert not any(one.enough for one in short)
    assert sum(race(record, seed, one.racing.enough).enough for seed, one in enumerate(short)) >= 9
    assert max(one.racing.enough for one in short) <= 2 * BUDGET


def test_there_are_runs_of_every_example() -> None:
    assert len(FOLDERS) == 5


FILE = "orders of May, 2026.parquet"
TUNED = [
    entry
    for system in SYSTEMS
    for entry in registry.select(f"{system}.*_tuned")
    if entry.operation in (Operation.WRITE, Operation.READ)
]


def written(folder: Path, figure=PGPQ, source: str = f"data/{FILE}", table: str = "") -> str:
    """The program of a transport in `folder`/programs, over a file in `folder`/data."""
    for name in ("data", "programs"):
        (folder / name).mkdir()
    pl.DataFrame({"id": [1, 2], "note": ["a", None]}).write_parquet(folder / "data" / FILE)
    user_data = data.from_file(folder / source)
    path = folder / "programs" / "best.py"
    script.write(path, figure, user_data, Source(folder / source, "", user_data.program.pattern), table)
    return path.read_text()


def test_it_names_what_to_install_with_the_extras_that_the_lab_itself_asks_for(tmp_path: Path) -> None:
    lines = written(tmp_path).splitlines()
    assert lines[:4] == [
        "# /// script",
        '# requires-python = ">=3.11"',
        '# dependencies = ["pgpq", "polars", "psycopg[binary]", "pyarrow"]',
        "# ///",
    ]


def test_one_over_arrow_wire_says_that_it_is_not_on_pypi_and_how_to_get_it(tmp_path: Path) -> None:
    text = written(tmp_path, FASTEST)
    assert text.splitlines()[2].endswith("]  # arrow-wire (not on PyPI: make wheel)")
    block = [line.removeprefix("# ") for line in text.splitlines()[1:3]]
    assert "arrow-wire[postgres]" in tomllib.loads("\n".join(block))["dependencies"]


@pytest.mark.parametrize("entry", TUNED, ids=lambda entry: entry.id)
@pytest.mark.parametrize("kind", ["rich.parquet", "rich.csv", "typed.parquet", "query"])
def test_one_over_arrow_wire_has_less_than_60_lines_and_calls_it_directly(entry, kind: str, tmp_path: Path) -> None:
    frame, file = typed(entry.system, 30) if kind.startswith("typed") else rich(), tmp_path / kind
    (frame.write_csv if file.suffix == ".csv" else frame.write_parquet)(file)
    source = Source(query="SELECT 1") if kind == "query" else Source(file, folder=tmp_path)
    won = SimpleNamespace(transport=entry.id, seconds=0.25, runs=7, rows=5)
    text = script.program(won, data.from_frame(frame) if kind == "query" else data.from_file(file), source, "a_table")
    assert text.count("\n") < 60
    assert text.startswith("# /// script\n")
    assert f"        {'frame = ' * (entry.operation is Operation.READ)}{entry.system}.{entry.operation}(" in text
    assert ("DROP TABLE a_table" if entry.operation is Operation.WRITE else "nothing to undo") in text
    assert f"{script.show.variable(entry)} is not set; give an address such as " in text
    ast.parse(text)


def test_its_docstring_says_what_was_measured_and_how_to_undo_it(tmp_path: Path) -> None:
    said = ast.get_docstring(ast.parse(written(tmp_path))) or ""
    first, _, last = said.splitlines()
    moved = (
        f"Move ../data/{FILE} into the table orders_of_may_2026 as postgres.pgpq.write_polars_copy_binary_sorted does"
    )
    assert first.startswith(f"{moved}: 0.125 s of 1,000 such rows, the median of 7 runs, by dataframe-io-lab ")
    assert " cores of " in first
    assert "To undo: DROP TABLE orders_of_may_2026" in last


def test_it_times_no_part_of_the_call(tmp_path: Path) -> None:
    assert "with phase(" in script.show.script(registry.one(PGPQ.transport))
    text = written(tmp_path)
    assert "phase" not in text
    assert "perf_counter" not in text


@pytest.mark.process
@pytest.mark.parametrize("source", [f"data/{FILE}", "data", "data/*.parquet"])
def test_no_path_of_this_machine_is_in_it_and_its_data_are_found_from_wherever_it_is_called(
    tmp_path: Path, source: str
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    text = written(here, source=source)
    assert str(tmp_path) not in text
    moved = here.rename(tmp_path / "{there} and back")
    program = moved / "programs" / "best.py"
    loading = text.partition("def main")[0] + "print(load().height)"
    program.write_text(loading)
    done = subprocess.run((sys.executable, str(program)), cwd="/", capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")


@pytest.mark.process
def test_without_an_address_it_says_which_variable_to_set_to_what(tmp_path: Path) -> None:
    written(tmp_path)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("LAB_")}
    program = str(tmp_path / "programs" / "best.py")
    done = subprocess.run((sys.executable, program), env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "LAB_POSTGRES_URI is not set; give an address such as postgresql://user:password@127.0.0.1:5432\n"
    )


def test_one_that_only_reads_has_nothing_to_undo(tmp_path: Path) -> None:
    reading = replace(PGPQ, transport="postgres.asyncpg.read_polars_copy_csv_parallel")
    said = ast.get_docstring(ast.parse(written(tmp_path, reading))) or ""
    assert said.startswith("Move the table orders_of_may_2026 into a frame as ")
    assert said.splitlines()[-1] == "It only reads: there is nothing to undo."


def test_one_that_needs_more_than_addresses_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="needs a folder shared with the server"):
        written(tmp_path, replace(PGPQ, transport="postgres.pg_parquet.write_polars_parquet_file"))


NAMES = [
    *('x"""; print("EXECUTED"); """"', '""""', '"' * 7, '"', "ends with \\", '\\"""', "'''", "a\nb", "a\rb", "\x00"),
    *("\x1b[31m", "\u202e", "\udcff", "# coding: latin-1", "{0} %s"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("place", ["file", "table"])
def test_a_name_of_any_characters_stays_in_the_docstring(name, place):
    entry = registry.one("postgres.psycopg.write_polars_copy_csv_lossless")
    found = SimpleNamespace(transport=entry.id, seconds=0.25, runs=7, rows=5)
    source, table = (Source(Path(name), ""), "t") if place == "file" else (Source(None, "SELECT 1"), name)
    text = script._docstring(entry, found, source, table)
    (only,) = ast.parse(text.encode("utf-8")).body
    said = ast.literal_eval(only.value)
    assert said.startswith("Move ")
    assert "0.250 s of 5 such rows, the median of 7 runs" in said
    shown = name if name.isprintable() else name.split("\n")[0] if "\n" in name else ascii(name)[1:-1]
    assert shown in said
