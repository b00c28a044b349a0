"""`lab recommend` as a person meets it: the screen, the files, the script, what is refused, and what is kept back."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import polars as pl
import psycopg
import pytest

from harness.datasets.examples import example
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.recommend.race import LAST_PASSES, MOST_PASSES
from harness.recommend.racing import TAIL_SECONDS
from harness.report import recommendation
from harness.results import runs_csv
from harness.systems import SYSTEMS
from tests.commands import Command, environment_below, refused

pytestmark = [pytest.mark.long, pytest.mark.alone]  # a race is some forty runs within a budget of time
PERSON = "Smith of 7 Elm Street"
RACE = ("--to", "postgres", "--style", "async", "--external", "--budget", "120", "--key", "order_id")


class Raced:
    """A race over 600 orders of which one note is a secret: what was said, and where everything is."""

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


def test_the_screen_says_who_is_fastest_and_what_stands_beside_it(raced: Raced) -> None:
    assert raced.done.returncode == 0, raced.done.stderr
    screen = raced.done.stdout
    for choice in ("Take ", "pip install", "fastest", "from PyPI", "least code", "default", "server alone"):
        assert choice in screen
    assert "polars to Postgres: 600 rows of 10 columns, lab external" in screen
    assert re.search(r"^lab: external \(.*\); (.* and )?600 rows of your data$", screen, re.MULTILINE)
    assert f"Script: {raced.script} (" in screen
    assert re.search(r"\| asyncpg \w+ \| [\d.]+ s \|", screen)
    assert re.search(r"^> Every value compared; .*`lab recommend --data FILE --to postgres", screen, re.MULTILINE)


def test_ctrl_c_prints_what_is_known_so_far_and_how_to_go_on(raced: Raced, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "harness.cli", "recommend", "--data", str(raced.data), *RACE)
    environment = raced.environment | {"LAB_RESULTS_DIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as racing:
        assert racing.stdout
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
    done = raced.lab("recommend", "--data", str(raced.data), *RACE, "--resume", folder.name, env=environment)
    assert done.returncode == 0, done.stderr
    assert "you stopped the race" not in done.stdout


def test_every_run_of_the_race_is_a_row_and_the_file_agrees_with_them(raced: Raced) -> None:
    rows = runs_csv.load(raced.results / "runs.csv")
    found = recommendation.read(raced.results)
    assert found is not None
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


def test_nothing_of_the_data_is_left_in_results_but_names_types_and_counts(raced: Raced) -> None:
    kept = [path for path in raced.results.rglob("*") if path.is_file()]
    assert {"runs.csv", "environment.json", "recommendation.json", "report.html"} <= {path.name for path in kept}
    ids = [str(value).encode() for value in raced.orders["order_id"][:50]]
    for path in kept:
        content = path.read_bytes()
        assert PERSON.encode() not in content, path
        assert not [value for value in ids if value in content], path
    assert "note" in (raced.results / "environment.json").read_text()
    assert list((raced.results / "logs").iterdir()) == []


def test_nothing_is_left_in_the_database(raced: Raced) -> None:
    with psycopg.connect(raced.environment["LAB_POSTGRES_URI"]) as connection:
        left = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename LIKE 'own%%'"
        left = connection.execute(left, [namespace()]).fetchall()
    assert left == []


def test_the_script_runs_as_it_stands_and_writes_every_value(raced: Raced) -> None:
    address = raced.environment["LAB_POSTGRES_URI"]
    variables = {"LAB_POSTGRES_URI": address, "PATH": os.environ["PATH"]}
    done = subprocess.run(
        (sys.executable, str(raced.script)), env=variables, cwd=raced.folder, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    with psycopg.connect(address, autocommit=True) as connection:
        rows = connection.execute("SELECT order_id, net, state, note FROM orders ORDER BY order_id").fetchall()
        connection.execute("DROP TABLE orders")
    assert rows == raced.orders.select("order_id", "net", pl.col("state").cast(pl.String), "note").rows()


def test_the_report_opens_with_the_same_screen_also_when_made_again(raced: Raced) -> None:
    done = raced.lab("report", str(raced.results), env=raced.environment)
    found = recommendation.read(raced.results)
    assert found is not None
    assert done.returncode == 0, done.stderr
    for text in (done.stdout, (raced.results / "report.md").read_text(), (raced.results / "report.html").read_text()):
        assert "polars to Postgres: 600 rows of 10 columns" in text
        assert found.fastest.transport in text
    lines = (raced.results / "report.md").read_text().splitlines()
    assert lines[0].startswith("# polars to Postgres: 600 rows of 10 columns")
    assert lines[2] == "![How long each direction takes](pictures/directions.svg)"
    assert not any("\\`" in line or line.startswith("Published figures") for line in lines)
    assert found.compared == "every value, with a second reading"
    for name in ("report.md", "report.html"):
        said = "The data were compared before the run: every value, with a second reading."
        assert said in (raced.results / name).read_text()


def test_a_race_goes_on_where_it_was_stopped(raced: Raced) -> None:
    before = (raced.results / "runs.csv").read_text().splitlines()
    (raced.results / "runs.csv").write_text("\n".join(before[:-5]) + "\n")
    done = raced.run("--data", str(raced.data), *RACE, "--resume", raced.results.name)
    assert done.returncode == 0, done.stderr
    rows = runs_csv.load(raced.results / "runs.csv")
    assert len({row.key for row in rows}) == len(rows)
    kept = (raced.results / "runs.csv").read_text().splitlines()
    assert kept[: len(before) - 5] == before[:-5]
    assert len(rows) >= len(before) - 5  # with other times it may be decided a pass sooner or later
    other = raced.folder / "other.parquet"
    raced.orders.head(300).write_parquet(other)
    assert "made in another environment" in refused(
        raced.run("--data", str(other), *RACE, "--resume", raced.results.name)
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--data", "nowhere.parquet", "--to", "postgres"),
            "expected a file of Parquet, CSV or Arrow at nowhere.parquet",
        ),
        (("--data", "{data}"), "expected one database to write to or to read from"),
        (("--data", "{data}", "--to", "postgres", "--from", "clickhouse"), "found two"),
        (("--data", "{data}", "--to", "oracle"), 'expected a database (postgres, clickhouse), found "oracle"'),
        (("--data", "{data}", "--to", "postgres", "--frame", "dask"), 'found "dask"'),
        (("--data", "{data}", "--to", "postgres", "--key", "state"), "expected a key that is unique"),
        (("--data", "{data}", "--to", "postgres", "--budget", "5"), "expected a budget of at least"),
        (("--data", "{data}", "--to", "postgres", "--budget", "-1"), "expected a budget in seconds above 0"),
        (("--data", "{data}", "--to", "postgres", "--max-memory", "much"), "expected an amount of memory"),
        (
            ("--data", "{data}", "--to", "postgres", "--without", "psycop"),
            'no client or module for --without "psycop". Did you mean "psycopg"? Choose from: ',
        ),
        (("--data", "{data}", "--to", "postgres", "--style", "threads"), 'found "threads"'),
        (("--data", "{data}", "--to", "postgres", "--rows", "0"), "expected rows to be a whole number"),
        (("--data", "{data}", "--query", "SELECT 1", "--to", "postgres"), "found both"),
        (("--query", "SELEC 1", "--to", "postgres"), "postgres refused the query: syntax error at or near"),
        (
            ("--data", "{data}", "--to", "postgres", "--script", "no/such/folder/s.py"),
            "expected a file to write the script",
        ),
        (
            ("--query", "SELECT 1", "--from", "postgres", "--script", "s.py"),
            "expected --table with --script, --query and",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(raced: Raced, arguments: tuple[str, ...], said: str) -> None:
    filled = [argument.format(data=raced.data) for argument in arguments]
    assert said in refused(raced.run(*filled))
    assert len(list((raced.folder / "results").glob("2*"))) == 1


def test_a_table_that_somebody_else_has_is_not_touched(raced: Raced) -> None:
    with psycopg.connect(raced.environment["LAB_POSTGRES_URI"], autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {namespace()}.own (a int)")
        try:
            assert f'table "{namespace()}.own" exists and was not made by the lab' in refused(
                raced.run("--data", str(raced.data), *RACE)
            )
            assert connection.execute(f"SELECT count(*) FROM {namespace()}.own").fetchall() == [(0,)]
        finally:
            connection.execute(f"DROP TABLE {namespace()}.own")


def test_without_data_it_answers_from_a_run_and_says_which(raced: Raced) -> None:
    assert "expected a run of suite matrix of this machine in" in refused(raced.run())


def test_the_file_says_what_the_screen_says(raced: Raced) -> None:
    facts = json.loads((raced.results / "recommendation.json").read_text())
    assert facts["fastest"]["transport"] in raced.done.stdout
    assert facts["operation"] == "write"
    assert facts["rows"] == 600


def test_the_whole_command_ends_within_its_budget_and_says_when_it_will(raced: Raced, lab_process: Command) -> None:
    """With servers of its own: their start, the end of them, the report and all."""
    budget, started = 60, time.monotonic()
    asked = ("--data", str(raced.data), "--to", "postgres", "--style", "async", "--budget", str(budget))
    environment = raced.environment | {"LAB_RESULTS_DIR": str(raced.folder / "in_time")}
    done = lab_process("recommend", *asked, env=environment)
    assert time.monotonic() - started <= budget + TAIL_SECONDS
    assert done.returncode == 0, done.stderr
    (folder,) = (raced.folder / "in_time").glob("2*")
    found = recommendation.read(folder)
    assert found is not None
    assert found.seconds <= budget
    told = [line for line in done.stdout.splitlines() if line.startswith("[ETA ")]
    assert len(told) == len(runs_csv.load(folder / "runs.csv"))
    assert all(re.match(r"\[ETA \d+:\d\d, at most \d+:\d\d\] ", line) for line in told)


def test_a_budget_that_ends_within_the_first_pass_prints_what_is_known_and_of_how_many(
    raced: Raced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(raced.environment, "LAB_RESULTS_DIR", str(raced.folder / "short"))
    asked = ("--data", str(raced.data), "--to", "postgres", "--external", "--budget")
    least = re.search(r"at least (\d+) s", refused(raced.run(*asked, "5")))
    assert least
    # What it says is without the start of the lab, and no budget is enough for a machine that does something else.
    for budget in (int(least[1]) * times for times in (1, 2, 4, 8)):
        done = raced.run(*asked, str(budget))
        if done.returncode == 0:
            break
        assert f"the budget of {budget} s was used up after 0; give it more" in done.stderr
    assert "Take " in done.stdout
    assert re.search(rf"Not final: the budget of {budget} s was used up after \d+ of \d+ transports", done.stdout)
