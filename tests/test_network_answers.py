"""`lab recommend --network`: who is the fastest over a network, from a run that has it, else from one that is made."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness import settings
from harness.cli import network, runs
from harness.machine.inventory import describe_machine
from harness.model import LabError
from harness.run import plan as plans
from harness.settings import Settings
from tests.commands import Command
from tests.report.cases import environment, run_folder
from tests.report.curves import line
from tests.report.curves import runs as made_up

QUICK, STRONG = "postgres.quick.write_polars_x", "postgres.strong.write_polars_x"


@pytest.fixture
def chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("LAB_RESULTS_DIR", str(tmp_path))
    return settings.load()


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
    assert network.parsed(said) == parameters


@pytest.mark.parametrize(
    "said", ["fast", "10", "0.2.1ms", ".ms", "10ms,20ms", "1Gbit,100Mbit", "10ms 1Gbit", "10ms,", "-1ms"]
)
def test_anything_else_is_refused(said: str) -> None:
    with pytest.raises(LabError, match=r"--network .*: give a round trip, a rate or both, such as"):
        network.parsed(said)


@pytest.mark.parametrize(("said", "expected"), [("10ms,1Gbit", STRONG), ("10ms,100Mbit", QUICK)])
def test_the_newest_run_with_this_network_answers(
    said: str, expected: str, chosen: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    leave(chosen)
    network.show(chosen, Console(width=220), said, None, "", "", "polars")
    text = capsys.readouterr().out
    assert "The fastest transport for the most rows that were run over 10 ms rtt and " in text
    assert expected in text
    assert "from run 20260101T000000Z-run, the newest of this machine" in text
    assert "on 20,000 rows of the table analytics_metrics of the lab" in text
    network.show(chosen, Console(width=220), said, 500, "postgres", "", "polars")
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
    network.show(chosen, Console(width=220), said, 700, "", "", "polars")
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
        (("--to", "oracle"), '"oracle" is no database of the lab; choose postgres or clickhouse'),
        (("--to", "postgres", "--from", "clickhouse"), "; not both"),
        (("--frame", "arrow"), '--frame "arrow": choose pandas or polars'),
        (("--data", "x.parquet"), "--network with data"),
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
