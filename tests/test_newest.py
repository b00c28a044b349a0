"""`lab recommend` without data: from the newest run of this machine, the reference run, or one that is made."""

import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness import settings
from harness.cli import newest, runs
from harness.machine.inventory import describe_machine
from harness.model import LabError
from harness.results.environment import made_on
from harness.run import plan as plans
from harness.settings import Settings
from tests.commands import Command
from tests.report.cases import environment, line, row, run_folder
from tests.report.cases import runs as made_up

HERE = describe_machine()
ELSEWHERE = HERE | {"cpu": "Another CPU"}
QUICK, STRONG = "postgres.quick.write_polars_x", "postgres.strong.write_polars_x"
SIZES = (1, 100, 10_000, 1_000_000)
TRANSPORT = "postgres.psycopg.write_polars_copy_text"
MATRIX = {"name": "matrix", "parameters": {"rows": [100_000]}, "origins": []}
OF_CROSSINGS = {"suite": "crossings", "size": "default", "passes": 3}


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("LAB_RESULTS_DIR", str(tmp_path))
    return settings.load()


def made(
    chosen: Settings, name: str, machine: dict[str, Any], dataset: str = "analytics_metrics", **facts: Any
) -> None:
    """Leave a run of the matrix among the results: `name` is the folder it lies in."""
    run_id = Path(name).name
    plan = {"suite": "matrix", "size": "default", "select": "*", "passes": 3, "experiments": [MATRIX]} | facts.pop(
        "plan", {}
    )
    about = {
        "experiment": facts.pop("experiment", "matrix"),
        "run_id": run_id,
        "suite": "matrix",
        "dataset": dataset,
        "frame": "polars",
        "client": "psycopg",
        "origin": "beyond",
    }
    call = row("postgres.psycopg.call", seconds=0.1, rows=1, operation="call", **{**about, "frame": ""})
    rows = [row(TRANSPORT, seconds=1.0, pass_number=number, **about) for number in (1, 2, 3)]
    known = environment(run_id=run_id, plan=plan, machine=machine, runs=4) | facts
    run_folder(chosen.results_dir / name, [call, *rows], known)


def said(chosen: Settings, capsys: pytest.CaptureFixture[str]) -> str:
    newest.show(chosen, Console(width=200))
    return capsys.readouterr().out


def test_it_is_the_newest_run_of_this_machine_and_says_which(
    chosen: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    made(chosen, "20260101T000000Z-old", HERE)
    made(chosen, "20260102T000000Z-new", HERE)
    made(chosen, "20260103T000000Z-other", ELSEWHERE)
    made(chosen, "reference/matrix", HERE)
    text = said(chosen, capsys)
    assert "from run 20260102T000000Z-new, the newest of this machine, lab local, " in text
    assert "on 1,000 rows of the table analytics_metrics of the lab\n" in text
    assert TRANSPORT in text


def test_where_this_machine_has_none_it_is_the_reference_run_with_its_machine(
    chosen: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    made(chosen, "20260103T000000Z-other", ELSEWHERE)
    made(chosen, "reference/matrix", ELSEWHERE)
    text = said(chosen, capsys)
    assert (
        "no run of this machine has answers yet: these are of the reference run that comes with the lab (matrix)"
        in text
    )
    assert "made on " in text
    assert "Another CPU" in text
    assert "the newest of this machine" not in text


@pytest.mark.parametrize(
    "facts",
    [
        {"plan": {"size": "smoke"}},
        {"plan": {"select": "postgres.*"}},
        {"plan": {"experiments": [MATRIX | {"parameters": {"rows": [1_000]}}]}},
        {"plan": {"experiments": [MATRIX | {"origins": ["published"]}]}},
        {"runs": 5},  # of which four were done
        {"data": [{"name": "own", "rows": 1_000, "columns": {"a": "int64"}}]},
    ],
    ids=["smoke", "some transports", "few rows", "some origins", "not ended", "own data"],
)
def test_a_part_of_a_run_or_one_on_own_data_does_not_answer(
    chosen: Settings, capsys: pytest.CaptureFixture[str], facts: dict[str, Any]
) -> None:
    made(chosen, "20260101T000000Z-old", HERE)
    made(chosen, "20260102T000000Z-part", HERE, **facts)
    assert "from run 20260101T000000Z-old, " in said(chosen, capsys)


def test_a_run_without_answers_or_that_cannot_be_read_is_passed_over(
    chosen: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    made(chosen, "20260101T000000Z-old", HERE)
    made(chosen, "20260102T000000Z-torn", HERE)
    (chosen.results_dir / "20260102T000000Z-torn" / "environment.json").write_text("{")
    made(chosen, "20260103T000000Z-begun", HERE)
    (chosen.results_dir / "20260103T000000Z-begun" / "runs.csv").write_text("")
    made(chosen, "20260104T000000Z-race", HERE, experiment="race")
    assert "from run 20260101T000000Z-old, " in said(chosen, capsys)


def test_without_any_run_it_says_how_to_make_one(chosen: Settings) -> None:
    made(chosen, "20260103T000000Z-other", ELSEWHERE)
    with pytest.raises(
        LabError,
        match=r"no run of suite matrix of this machine in .* answers; lab run makes",
    ):
        newest.show(chosen, Console(width=200))


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"kernel": "another"}, True),
        ({"memory_bytes": HERE["memory_bytes"] + 1}, True),
        ({"memory_bytes": HERE["memory_bytes"] + 2**31}, False),
        ({"cpu": "another"}, False),
        ({"cores": HERE["cores"] + 1}, False),
        ({"architecture": "another"}, False),
        ({"host": "another"}, False),
    ],
)
def test_a_machine_is_known_by_its_hardware_and_name(change: dict[str, Any], same: bool) -> None:
    assert made_on({"lab": "embedded", "machine": HERE | change}, HERE) is same
    # A container has a new name each time.
    assert made_on({"lab": "compose", "machine": HERE | change | {"host": "0123456789ab"}}, HERE) is (
        same or "host" in change
    )


def curves(chosen: Settings, name: str, machine: dict[str, Any], **of_strong: Any) -> None:
    """Leave a run of crossings: one transport is quick at few rows, the other at many."""
    run_id = Path(name).name
    about = {"run_id": run_id, "suite": "crossings"}
    rows = made_up(QUICK, line(0.001, 1e-4, SIZES), **about) + made_up(
        STRONG, line(0.021, 2e-6, SIZES), **about | of_strong
    )
    facts = environment(run_id=run_id, plan=OF_CROSSINGS, machine=machine)
    run_folder(chosen.results_dir / name, rows, facts)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (100, (QUICK, "0.0110", "this size")),
        (150, (QUICK, "0.0160", "100 and 10,000 rows, interpolated")),
        (5_000, (STRONG, "0.0310", "100 and 10,000 rows, interpolated")),
        (20_000_000, (STRONG, "40.0", "up to 1,000,000 rows, EXTRAPOLATED")),
    ],
)
def test_with_rows_it_names_the_fastest_at_that_number_and_the_run_that_shows_it(
    rows: int, expected: tuple[str, ...], chosen: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    curves(chosen, "20260101T000000Z-old", HERE)
    newest.show_at(chosen, Console(width=220), rows, "", "", "polars")
    text = capsys.readouterr().out
    assert f"The fastest transport for {rows:,} rows" in text
    assert "  ".join(("polars to Postgres", *expected)) in re.sub(" {2,}", "  ", text)
    assert "from run 20260101T000000Z-old, the newest of this machine" in text


def test_beyond_the_largest_size_it_is_the_fastest_there_where_none_costs_as_a_line_says(
    chosen: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    about = {"run_id": "20260101T000000Z-bent", "suite": "crossings"}
    bent = {rows: [seconds] * 3 for rows, seconds in zip(SIZES, (0.1, 0.9, 0.1, 0.9), strict=True)}
    rows = made_up(QUICK, bent, **about)
    facts = environment(run_id=about["run_id"], plan=OF_CROSSINGS, machine=HERE)
    run_folder(chosen.results_dir / about["run_id"], rows, facts)
    newest.show_at(chosen, Console(width=220), 2_000_000, "", "", "polars")
    text = re.sub(" {2,}", "  ", capsys.readouterr().out)
    assert f"{QUICK}  1,000,000 rows, the most; no transport follows a line" in text


def test_with_rows_only_what_is_asked_for_and_exact_is_reported_and_too_few_runs_are_said(
    chosen: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    curves(chosen, "20260101T000000Z-old", HERE, fidelity="converted: a String")
    newest.show_at(chosen, Console(width=220), 1_000_000, "postgres", "", "polars")
    assert QUICK in capsys.readouterr().out  # the other one is faster, and not exact
    for asked in (("clickhouse", "", "polars"), ("", "postgres", "polars"), ("", "", "pandas")):
        with pytest.raises(LabError, match=r"no run of suite crossings .*; lab run crossings makes one"):
            newest.show_at(chosen, Console(width=220), 100, *asked)
    with pytest.raises(LabError, match="rows 0: give a whole number of at least 1"):
        newest.show_at(chosen, Console(width=220), 0, "", "", "polars")
    once = {"run_id": "20260102T000000Z-once", "suite": "crossings"}
    facts = environment(run_id=once["run_id"], plan={"suite": "crossings", "size": "smoke", "passes": 1}, machine=HERE)
    run_folder(chosen.results_dir / once["run_id"], made_up(QUICK, line(0.001, 1e-4, SIZES, (1,)), **once), facts)
    newest.show_at(chosen, Console(width=220), 100, "", "", "polars")
    assert "too few runs to tell" in capsys.readouterr().out


def leave(
    chosen: Settings, name: str = "20260101T000000Z-run", sizes: tuple[int, ...] = (20_000,), rtt_ms: float = 10
) -> None:
    """Leave a run in which STRONG is faster over 1 Gbit/s, and QUICK over 100 Mbit/s."""
    about = {"run_id": name, "suite": "crossings", "experiment": "networks"}
    rows = []
    for mbit, quick, strong in (("1000", 0.9, 0.1), ("100", 0.2, 1.0)):
        cell = {**about, "extra": f"; rtt_ms={rtt_ms}; mbit_per_s={mbit}"}
        rows += made_up(QUICK, line(quick, 0, sizes), **cell) + made_up(STRONG, line(strong, 0, sizes), **cell)
    plan = {"suite": "crossings", "size": "default", "passes": 3}
    run_folder(chosen.results_dir / name, rows, environment(run_id=name, plan=plan, machine=describe_machine()))


@pytest.mark.parametrize(
    ("said", "parameters"),
    [
        ("10ms,1Gbit", {"rtt_ms": "10", "mbit_per_s": "1000"}),
        ("100Mbit/s, 1 ms", {"rtt_ms": "1", "mbit_per_s": "100"}),
        ("50MS", {"rtt_ms": "50", "mbit_per_s": "0"}),
        ("0.2ms,1Gbit", {"rtt_ms": "0.2", "mbit_per_s": "1000"}),
        ("1.0 ms", {"rtt_ms": "1", "mbit_per_s": "0"}),
        ("2gbit", {"rtt_ms": "0", "mbit_per_s": "2000"}),
    ],
)
def test_a_network_is_its_round_trip_and_its_rate(said: str, parameters: dict[str, str]) -> None:
    assert newest.parsed(said) == parameters


@pytest.mark.parametrize(
    "said", ["fast", "10", "0.2.1ms", ".ms", "10ms,20ms", "1Gbit,100Mbit", "10ms 1Gbit", "10ms,", "-1ms"]
)
def test_anything_else_is_refused(said: str) -> None:
    with pytest.raises(LabError, match=r"--network .*: give a round trip, a rate or both, such as"):
        newest.parsed(said)


@pytest.mark.parametrize(("said", "expected"), [("10ms,1Gbit", STRONG), ("10ms,100Mbit", QUICK)])
def test_the_newest_run_with_this_network_answers(
    said: str, expected: str, chosen: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(chosen)
    newest.over_network(chosen, Console(width=220), said, None, "", "", "polars")
    text = capsys.readouterr().out
    assert "The fastest transport for the most rows that were run over 10 ms rtt and " in text
    assert expected in text
    assert "from run 20260101T000000Z-run, the newest of this machine" in text
    assert "on 20,000 rows of the table analytics_metrics of the lab" in text
    newest.over_network(chosen, Console(width=220), said, 500, "postgres", "", "polars")
    assert "20,000 rows, the fewest" in capsys.readouterr().out


@pytest.mark.parametrize(("said", "rtt_ms"), [("10ms,1Gbit", 10), ("0.2ms,1Gbit", 0.2)])
def test_a_network_that_no_run_has_is_run_alone_and_then_answers(
    said: str, rtt_ms: float, chosen: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def perform(request: Any, suite: Any) -> bool:
        asked.append(request)
        leave(chosen, sizes=(700,), rtt_ms=rtt_ms)
        return True

    monkeypatch.setattr(runs, "perform", perform)
    newest.over_network(chosen, Console(width=220), said, 700, "", "", "polars")
    assert f"no run has the network {said} yet: it is run now" in capsys.readouterr().out
    (request,) = asked
    (part,) = request.plan.experiments
    assert part.parameters == {"rows": [700], "rtt_ms": [rtt_ms], "mbit_per_s": [1000]}
    assert request.plan.passes >= 3
    from harness import registry

    assert {case.transport.operation for case in plans.cases(request.plan, registry.select)} >= {"write", "read"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--to", "oracle"), '"oracle" is not a database of the lab; choose postgres or clickhouse'),
        (("--to", "postgres", "--from", "clickhouse"), "; not both"),
        (("--frame", "arrow"), '--frame "arrow": choose pandas or polars'),
        (("--data", "x.parquet"), "--network works only without data"),
        (("--rows", "0"), "rows 0: give a whole number of at least 1"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_anything_is_run(
    asked: tuple[str, ...], said: str, lab: Command, environment: dict[str, str]
) -> None:
    done = lab("recommend", "--network", "10ms", *asked, env=environment)
    assert done.returncode == 2
    assert said in done.stderr
    assert "it is run now" not in done.stdout
