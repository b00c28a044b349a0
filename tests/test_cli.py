"""The command line as a user sees it: its refusals, its files, its repeated output, its end."""

import csv
import fcntl
import gzip
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

import polars as pl
import psycopg
import pytest
import typer

from harness import registry
from harness.cli.app import explained
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import Status
from harness.report.fidelity import loses
from harness.report.terminal import LINES
from harness.results import runs_csv
from harness.run.lock import NAME
from harness.settings import ROOT
from harness.show import script
from harness.systems import SYSTEMS
from tests.commands import STOPPED, Command, refused, succeeded

REFERENCE = f"{ROOT}/results/reference/{{}}"
ONE_WAY = "postgres.psycopg.write_polars_copy_text"
BOTH = f"{ONE_WAY},clickhouse.httpx.read_polars_parquet"  # a run asks only the databases of its cases
OF_THE_ARTICLE = ("--experiment", "matrix", "--origin", "published")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "matrx"), 'no suite "matrx"'),
        (("run", "--only", "clickhose.*"), 'Did you mean "clickhouse.*"?'),
        (("run", "--only", ""), 'no transport ""'),
        (("run", "--rows", "0"), "rows 0: give a whole number of at least 1"),
        (("run", "--rows", "-5"), "rows -5: give a whole number of at least 1"),
        (("run", "--passes", "0"), "passes 0: give a whole number of at least 1"),
        (("run", "--external"), "--external: no server is set; set LAB_"),
        (("recommend", "--data", "/dev/null", "--to", "postgres", "--external"), "--external: no server is set"),
        (("run", "--data", "/dev/null", "--external"), "--external: no server is set"),
        (("run", "--resume", "20200101T000000Z-nowhere"), 'no run "20200101T000000Z-nowhere"'),
        (
            ("run", "--resume", "x", "--rows", "5", "--only", "*"),
            "rows, only with --resume: a run continues as it was planned",
        ),
        (("run", "scan", "--resume", "x"), "suite with --resume: a run continues as it was planned"),
        (("run", "--external", "--resume", "x"), "external with --resume: a run continues as it was planned"),
        (("list", "nothing.*"), 'no transport "nothing.*"'),
        (("show", "postgres.psycopg.write_polars_copy_txt"), 'Did you mean "postgres.psycopg.write_polars_copy_text"?'),
        (("show", "postgres"), "have it in the name: lab list '*postgres*'"),
        (("report", "nowhere"), 'no run "nowhere"'),
        (("report", "no\nwhere"), r'no run "no\nwhere"'),
        (("report", "x" * 5_000), "environment.json: File name too long"),
        (("example", "trips", "/dev/full"), "cannot write /dev/full: No space left on device"),
        (("compare", "nowhere", "elsewhere"), 'no run "nowhere"'),
        (("compare", REFERENCE.format("matrix"), REFERENCE.format("scan")), "runs of different suites"),
        (("verify", "parquet.*"), "matches no transport of a database"),
        (("verify", "--kinds", "tabs"), 'no kind of values "tabs". Did you mean "tab"? Choose from: one_row, '),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2_and_leaves_nothing(
    lab: Command, environment: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    assert said in refused(lab(*arguments, env=environment))
    assert not Path(environment["LAB_RESULTS_DIR"]).exists()


def test_a_script_goes_to_stdout_and_what_it_is_known_to_lose_to_stderr(
    lab: Command, environment: dict[str, str]
) -> None:
    entry = registry.one("postgres.psycopg.write_polars_copy_text")
    done = lab("show", entry.id, env=environment)
    assert done.stdout == script(entry)
    assert done.stderr == f"known losses: {loses(entry.lossy)}\n"
    assert "changed backslash_n, float32_into_float64; refused arrays" in done.stderr


def test_an_unreachable_server_is_named_within_5_seconds(lab: Command, environment: dict[str, str]) -> None:
    started = time.monotonic()
    done = lab("run", "--external", env=environment | {"LAB_POSTGRES_URI": "postgresql://u:geheim99@127.0.0.1:1/db"})
    line = refused(done)
    assert "127.0.0.1:1" in line
    assert "geheim99" not in done.stdout + done.stderr
    assert time.monotonic() - started < 8  # 5 s for the server
    assert not Path(environment["LAB_RESULTS_DIR"]).exists()


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("LAB_POSTGRES_URI", "postgresql://lab:geheim99@{server}", "password authentication failed"),
        ("LAB_CLICKHOUSE_NATIVE_URI", None, "is set; set all of them"),
        ("LAB_RESULTS_DIR", __file__, "LAB_RESULTS_DIR"),
        ("LAB_SEED", "abc", "LAB_SEED"),
    ],
)
def test_a_run_refuses_a_wrong_setting_without_its_password(
    lab: Command, on_embedded_lab: dict[str, str], setting: str, value: str | None, said: str
) -> None:
    changed = {name: text for name, text in on_embedded_lab.items() if name != setting}
    if value:
        changed[setting] = value.format(server=on_embedded_lab["LAB_POSTGRES_URI"].partition("@")[2])
    both = f"{ONE_WAY},clickhouse.httpx.write_polars_parquet_lz4"
    done = lab("run", "--external", "--rows", "100", "--only", both, env=changed)
    assert said in refused(done)
    assert "geheim99" not in done.stdout + done.stderr


@pytest.mark.long
def test_an_external_run_uses_the_named_servers_and_leaves_no_table(
    lab: Command, on_embedded_lab: dict[str, str], embedded_lab: EmbeddedLab
) -> None:
    ways = "postgres.psycopg.write_polars_*,postgres.pg_parquet.write_polars_*,clickhouse.httpx.write_polars_*"
    chosen = (*OF_THE_ARTICLE, "--only", ways)
    succeeded(lab("run", "--external", "--rows", "500", "--passes", "1", *chosen, env=on_embedded_lab))
    (folder,) = Path(on_embedded_lab["LAB_RESULTS_DIR"]).iterdir()
    rows = runs_csv.load(folder / "runs.csv")
    assert {row.lab for row in rows} == {"external"}
    assert {row.status for row in rows} == {Status.OK, Status.UNAVAILABLE}
    with psycopg.connect(embedded_lab.endpoints["postgres"]) as direct:
        query = (
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = %s AND table_name LIKE 'analytics%%'"
        )
        assert direct.execute(query, (namespace(),)).fetchone() == (0,)
    password = embedded_lab.endpoints["postgres"].partition(":lab:")[2] or embedded_lab._password
    assert not [path for path in folder.rglob("*") if path.is_file() and password in path.read_text(errors="replace")]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_foreign_table_with_the_labs_name_is_refused_before_anything_is_done(
    lab: Command, on_embedded_lab: dict[str, str], embedded_lab: EmbeddedLab, system: str
) -> None:
    opened = SYSTEMS[system].client.open_connection(embedded_lab.endpoints)
    SYSTEMS[system].client.ensure_namespace(opened)
    name = f"{namespace()}.analytics_metrics_loaded"
    run_sql = opened.command if system == "clickhouse" else opened.cursor().execute
    run_sql(f"CREATE TABLE {name} (id {'Int32) ENGINE = MergeTree ORDER BY id' if system == 'clickhouse' else 'int)'}")
    try:
        line = refused(lab("run", "--external", "--only", BOTH, env=on_embedded_lab))
        assert f'table "{name}" exists and was not made by the lab' in line
        assert not Path(on_embedded_lab["LAB_RESULTS_DIR"]).exists()
    finally:
        run_sql(f"DROP TABLE {name}")


def test_a_second_run_on_the_same_machine_is_refused_with_the_first_ones_id(
    lab: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    folder = Path(environment["LAB_LOCK_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    (data := tmp_path / "data.csv").write_text("number\n1\n")
    with (folder / NAME).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write("20260101T000000Z-first")
        held.flush()
        for arguments in (
            ("run",),
            ("run", "--data", str(data)),
            ("recommend", "--data", str(data), "--to", "postgres"),
        ):
            done = lab(*arguments, env=environment)
            assert "run 20260101T000000Z-first is using this machine" in refused(done)
            assert done.stdout == ""  # nothing was estimated or begun


@pytest.mark.long
def test_the_summary_is_written_again_from_results_alone_and_a_damaged_file_is_reported_not_guessed_at(
    lab: Command, on_embedded_lab: dict[str, str]
) -> None:
    few = "--rows 100 --passes 2 --only *.psycopg.*_polars_copy_text"
    lab("run", "--external", *OF_THE_ARTICLE, *few.split(), env=on_embedded_lab)
    (folder,) = Path(on_embedded_lab["LAB_RESULTS_DIR"]).iterdir()
    first = (folder / "summary.csv").read_text()
    (folder / "summary.csv").unlink()
    succeeded(lab("report", folder.name, env=on_embedded_lab))
    assert (folder / "summary.csv").read_text() == first
    with (folder / "summary.csv").open(newline="") as file:
        assert {row["n"] for row in csv.DictReader(file)} == {"2"}
    kept = (folder / "runs.csv").read_text()
    (folder / "runs.csv").write_text(kept.replace(",ok,,", ",error,it broke,", 1))
    done = lab("report", folder.name, env=on_embedded_lab)
    assert re.search(r"1 of 4 runs are not ok; see .+\n  postgres.psycopg.\w+, pass 1: error: it broke", done.stdout)
    with (folder / "runs.csv").open("a") as damaged:
        damaged.write("only,three,cells\n")
    assert "line 6" in refused(lab("report", folder.name, env=on_embedded_lab))


def _published_of_the_reference(folder: Path) -> Path:
    """Return a run's folder with only the published transports of the reference run of matrix, for a fast report."""
    run, reference = folder / "run", Path(REFERENCE.format("matrix"))
    run.mkdir()
    shutil.copy(reference / "environment.json", run)
    rows = pl.read_csv(reference / "runs.csv", infer_schema=False)
    rows.filter(pl.col("origin") == "published").write_csv(run / "runs.csv")
    return run


@pytest.mark.long
def test_a_report_ends_with_its_answers_on_one_screen_and_has_its_tables_where_asked_for(
    lab: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    folder = _published_of_the_reference(tmp_path)
    plain = environment | {"LAB_PICTURES": "false"}
    short = succeeded(lab("report", str(folder), env=plain))
    assert len(short.stdout.splitlines()) <= LINES
    assert "The fastest exact transport" in short.stdout
    assert "Postgres write: 100,000 rows" not in short.stdout
    whole = lab("report", str(folder), "--tables", env=plain)
    assert "Postgres write: 100,000 rows" in whole.stdout
    assert whole.stdout.endswith(short.stdout)


@pytest.mark.long
def test_a_run_compared_with_itself_shows_no_difference_and_leaves_its_files_in_the_named_folder(
    lab: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    run = str(_published_of_the_reference(tmp_path))
    done = succeeded(lab("compare", run, run, "--to", str(tmp_path / "new"), env=environment))
    with (tmp_path / "new" / "compared.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert f"geometric mean of {len(lines)} " in done.stdout
    assert len(lines) >= 50
    assert {(line["ratio"], line["p"], line["shown"]) for line in lines} == {("1", "1", "~")}
    assert "~ no difference is shown" in (tmp_path / "new" / "compared.md").read_text()


@pytest.mark.long
def test_verify_prints_the_matrix_and_writes_it(lab: Command, environment: dict[str, str], tmp_path: Path) -> None:
    done = succeeded(
        lab("verify", ONE_WAY, "--kinds", "one_row,tab,backslash_n", "--to", str(tmp_path / "to"), env=environment)
    )
    assert f"{ONE_WAY} · X ·" in done.stdout
    assert done.stdout.startswith("lab: embedded (postgres 18.")
    assert f"\n[1/3] {ONE_WAY}\n" in done.stdout
    with (tmp_path / "to" / "fidelity.csv").open(newline="") as file:
        rows = {row["kind"]: row for row in csv.DictReader(file)}
    assert {kind: row["outcome"] for kind, row in rows.items()} == {
        "one_row": "exact",
        "backslash_n": "changed",
        "tab": "exact",
    }
    assert rows["backslash_n"]["declared"] == "changed"
    assert rows["backslash_n"]["detail"].endswith("expected '\\\\N', found None")
    assert not Path(environment["LAB_RESULTS_DIR"]).exists()


@pytest.mark.long
@pytest.mark.process
def test_serve_prints_addresses_that_work_and_ends_on_sigterm(environment: dict[str, str]) -> None:
    command = (sys.executable, "-m", "harness.cli", "serve")
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as serving:
        printed = dict(serving.stdout.readline().rstrip("\n").split("\t") for _ in range(3))
        assert set(printed) == {"postgres", "clickhouse_http", "clickhouse_native"}
        with psycopg.connect(printed["postgres"]) as direct:
            assert direct.execute("SELECT 1").fetchone() == (1,)
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(timeout=15) == 143
    assert not [path for path in Path(environment["LAB_STATE_DIR"]).iterdir() if path.is_dir()]


@pytest.mark.long
def test_variables_of_clients_and_of_python_change_nothing_in_an_embedded_lab(
    lab_process: Command, environment: dict[str, str]
) -> None:
    strange = {"PGSSLMODE": "verify-full", "PGSERVICE": "nowhere", "PGOPTIONS": "-c nothing=1", "PGDATABASE": "another"}
    strange |= {
        "PYTHONOPTIMIZE": "2",
        "PYTHONIOENCODING": "ascii",
        "PYTHONWARNINGS": "error",
        "HTTP_PROXY": "http://x:1",
    }
    strange |= {"POLARS_MAX_THREADS": "none", "CLICKHOUSE_PASSWORD": "another", "TZ": "Asia/Kathmandu"}
    ways = "postgres.psycopg.write_polars_copy_text,clickhouse.httpx.write_polars_parquet"
    run = ("run", "--experiment", "matrix", "--rows", "200", "--passes", "1", "--only", ways)
    succeeded(lab_process(*run, env=environment | strange))
    (folder,) = Path(environment["LAB_RESULTS_DIR"]).iterdir()
    assert [row.status for row in runs_csv.load(folder / "runs.csv")] == [Status.OK, Status.OK]


LAB = (sys.executable, "-m", "harness.cli")
SHOWN = "postgres.psycopg.call_select_1"
LARGE = {"polars", "pandas", "scipy", "jinja2", "psycopg", "clickhouse_driver"}
RIGHT = b"id,name\n1,a\n"
NOBODY = 54_321  # a uid that no passwd entry names


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("command", [("list",), ("--help",), ("show", SHOWN), ("report", "x")])
@pytest.mark.parametrize("stream", ["closed", "full"])
def test_an_output_that_takes_nothing_is_one_line(command, stream, environment: dict[str, str]) -> None:
    to = {"closed": "exec 1>&-; ", "full": "exec 1>/dev/full; "}[stream]
    done = subprocess.run(
        ("bash", "-c", f'{to}exec "$@"', "bash", *LAB, *command),
        stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("lab: no run" if command[0] == "report" and stream == "full" else "lab: ")
    assert "standard output" in line or "no run" in line


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize(
    "typed",
    [
        "run matrix --size medium",
        "recommend --data x.parquet --to postgress",
        "recommend --data x.parquet --to postgres",
        "recommend --data README.md --to postgres",
        "recommend --data README.md --to postgres --max-memory much",
        "recommend --data README.md --to postgres --budget 0",
        "recommend --data README.md --to postgres --style threads",
        "recommend --data README.md --to postgres --without pandsa",
        "recommend --to postgres --frame spark",
        "recommend --data README.md --to postgres --script /",
        "report x",
    ],
)
def test_a_wrong_word_is_found_before_anything_large_is_imported(typed, environment: dict[str, str]) -> None:
    assert imported_by(typed.split(), environment) & {*LARGE, "pyarrow"} == set()


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("empty.csv", b"", ""),
        ("latin_1.csv", b"id,city\n1,K\xf6ln\n", ""),
        ("index.csv", b",a\n0,1\n", ""),
        ("ragged.csv", b"a,b\n1,2\n5,6,7\n", ""),
        ("right.csv", RIGHT, "--key idd"),
        ("right.csv", RIGHT, "--schema idd=int"),
        ("other.csv", b"a;b\n1,5;x\n2;y\n", "--separator ,"),
        ("right.csv", RIGHT, "--rows 0"),
        ("array.ndjson", b"[{}]\n", ""),
        ("cut_off.parquet", b"PAR1 and no more", ""),
        ("folder/none.txt", RIGHT, ""),
    ],
)
def test_data_that_are_wrong_at_a_first_look_are_refused_before_anything_large_is_imported(
    name, content, options, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    typed = ("recommend", "--to", "postgres", "--data", str(tmp_path / name.partition("/")[0]), *options.split())
    assert imported_by(typed, environment) & {*LARGE, "pyarrow"} == set()


@pytest.mark.process
@pytest.mark.long
def test_a_wrong_key_of_a_parquet_file_is_found_by_the_one_library_that_reads_its_names(
    environment: dict[str, str], tmp_path: Path
) -> None:
    pl.DataFrame({"id": [1]}).write_parquet(tmp_path / "a.parquet")
    typed = ("recommend", "--to", "postgres", "--data", str(tmp_path / "a.parquet"), "--key", "idd")
    assert imported_by(typed, environment) & {*LARGE, "pyarrow"} == {"pyarrow"}


@pytest.mark.process
@pytest.mark.long
def test_wrong_lines_at_the_start_of_standard_input_and_of_a_compressed_file_are_refused_at_a_first_look(
    environment: dict[str, str], tmp_path: Path
) -> None:
    wrong, typed = "a,b\n1,2\n5,6,7\n", ("recommend", "--to", "postgres", "--data")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(wrong.encode()))
    assert imported_by((*typed, "-"), environment, wrong) & {*LARGE, "pyarrow"} == set()
    of_file = imported_by((*typed, str(tmp_path / "a.csv.gz")), environment)
    assert of_file & {*LARGE, "pyarrow"} == {"pyarrow"}


def imported_by(typed: Sequence[str], environment: dict[str, str], given: str = "") -> set[str]:
    """Return the modules that a command imports that is refused with one line."""
    command = (sys.executable, "-X", "importtime", "-m", "harness.cli", *typed)
    done = subprocess.run(command, env=environment, input=given, capture_output=True, text=True, check=False)
    timed = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    said = [line for line in done.stderr.splitlines() if line not in timed]
    assert (done.returncode, len(said), said[0][:5]) == (2, 1, "lab: "), said
    found = {line.rpartition("|")[2].strip() for line in timed}
    assert "harness.cli.app" in found
    return found


@pytest.mark.process
@pytest.mark.long
def test_an_error_whose_output_is_closed_still_has_its_exit_code(environment: dict[str, str]) -> None:
    for to in ("exec 2>&-; ", "exec 2>/dev/full; ", "exec 0>&-; exec 2>&-; "):
        command = ("bash", "-c", f'{to}exec "$@"', "bash", *LAB, "report", "x")
        assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 2


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("name", ["LAB_RESULTS_DIR", "LAB_STATE_DIR", "LAB_LOCK_DIR"])
def test_a_folder_of_the_settings_that_is_no_utf_8_is_one_line(
    name, environment: dict[str, str], tmp_path: Path
) -> None:
    place = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    command = (*LAB, "report", "x")
    done = subprocess.run(command, env=environment | {name: place}, capture_output=True, text=True, check=False)
    assert rf"{name}: the path {tmp_path}/\udcff is not UTF-8; rename" in refused(done)


@pytest.mark.process
@pytest.mark.long
def test_a_file_of_data_whose_name_is_no_utf_8_is_one_line(environment: dict[str, str], tmp_path: Path) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "good.parquet")
    place = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet")
    (tmp_path / "good.parquet").rename(place)
    command = (*LAB, "recommend", "--to", "postgres", "--data", place)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert rf"--data: the path {tmp_path}/\udcff.parquet is not UTF-8; rename" in refused(done)


def test_an_example_is_written_under_any_name(lab: Command, environment: dict[str, str], tmp_path: Path) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    assert lab("example", "trips", str(place), "--rows", "5", env=environment).returncode == 0
    assert pl.read_parquet(place.read_bytes()).height == 5


@pytest.mark.process
@pytest.mark.long
@pytest.mark.parametrize("budget", ["1e308", "604801", "inf", "nan", "0", "-1"])
def test_a_budget_that_is_too_long_is_one_line(
    lab: Command, budget: str, environment: dict[str, str], tmp_path: Path
) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "good.parquet")
    asked = ("--to", "postgres", "--data", str(tmp_path / "good.parquet"), "--budget", budget)
    done = lab("recommend", *asked, env=environment)
    assert "give seconds above 0 and up to 604800 (a week)" in refused(done)


@pytest.mark.process
@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed, and only root becomes one")
def test_a_user_without_a_home_is_one_line(environment: dict[str, str]) -> None:
    plain = {name: value for name, value in environment.items() if name != "HOME"}
    command = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--inh-caps",
               "+dac_read_search", "--ambient-caps", "+dac_read_search", *LAB, "report", "x")  # fmt: skip
    done = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
    assert "found no home folder for ~/" in refused(done)


@pytest.mark.process
@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="a user of few processes is needed, and only root becomes one")
@pytest.mark.parametrize(
    ("kind", "number", "said"),
    [
        ("nproc", "1", "lab: this machine is short of processes"),
        ("nproc", "12", "lab: this machine is short of processes"),
        ("nproc", "60", "lab: this machine is short of processes"),
        ("nofile", "16", "lab: "),
    ],
)
def test_too_few_processes_or_files_are_one_line(
    kind, number, said, environment: dict[str, str], tmp_path: Path
) -> None:
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "good.parquet")
    for path in (tmp_path, *tmp_path.parents):
        if path.owner() == "root" and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o755)
    for name in ("RESULTS", "STATE", "LOCK"):
        Path(environment[f"LAB_{name}_DIR"]).mkdir(exist_ok=True)
        Path(environment[f"LAB_{name}_DIR"]).chmod(0o777)
    command = ("prlimit", f"--{kind}={number}", "setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY),
               "--clear-groups", "--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search", *LAB,
               "recommend", "--to", "postgres", "--data", str(tmp_path / "good.parquet"), "--budget", "20")  # fmt: skip
    done = subprocess.run(
        command, env=environment | {"HOME": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.splitlines()[-1].startswith(said), done.stderr
    assert "Traceback" not in done.stderr


class Stopping(Decimal):
    """A number that Ctrl-C interrupts: polars asks for its digits, and panics when Python answers with an exception."""

    def as_tuple(self) -> NoReturn:
        raise KeyboardInterrupt


def test_ctrl_c_while_polars_asks_python_for_a_value_ends_like_any_other_ctrl_c(
    capfd: pytest.CaptureFixture[str],
) -> None:
    @explained
    def command() -> None:
        pl.Series([Stopping(1)])

    with pytest.raises(typer.Exit) as ended:
        command()
    assert ended.value.exit_code == STOPPED
    assert capfd.readouterr().err.endswith("lab: stopped\n")


@pytest.mark.process
@pytest.mark.long
def test_ctrl_c_while_the_commands_are_imported_is_one_line(environment: dict[str, str]) -> None:
    interrupted = 0
    for seconds in (0.1, 0.2, 0.3, 0.5, 0.8, 5):
        with subprocess.Popen(
            (*LAB, "recommend"), env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE
        ) as lab:
            deadline = time.monotonic() + 20
            while b"SigCgt:\t0000000000000000" in Path(f"/proc/{lab.pid}/status").read_bytes():  # Python has not begun
                assert time.monotonic() < deadline
            time.sleep(seconds)
            lab.send_signal(signal.SIGINT)
            _, said = lab.communicate(timeout=30)
        if b"Traceback" in said and b"harness" not in said:
            continue  # Python itself had not started: on a busy machine it takes longer than this
        interrupted += 1
        assert b"Traceback" not in said, said
        assert lab.returncode in (130, 2, 0)
    assert interrupted
