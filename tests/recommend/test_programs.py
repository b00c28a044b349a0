"""The program of every transport that can win a race: each runs unchanged, and moves every value."""

import datetime as dt
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import polars as pl
import psycopg
import pytest

from harness import show
from harness.check.canonical import canonicalise
from harness.check.equality import differences
from harness.datasets import store
from harness.datasets.specification import PLAIN
from harness.datasets.user_data import data, reading
from harness.datasets.user_data.data import UserData
from harness.lab.embedded import EmbeddedLab
from harness.machine.variables import namespace
from harness.model import Operation, Transport
from harness.recommend import eligible, script
from harness.recommend.eligible import Asked
from harness.recommend.script import Source
from harness.report.recommendation import Figure
from harness.results import runs_csv
from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse
from tests.commands import Command
from tests.scripts import Scripts
from tests.typed import typed

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # some forty programs a test, and more
ROWS = 300
TO_READ = "program_read"
ONE_ROW = data.from_frame(pl.DataFrame({"id": [1]}))
WISHES = [
    Asked(data=ONE_ROW, system=system, operation=operation, frame=frame, program=True)
    for system in SYSTEMS
    for operation in (Operation.WRITE, Operation.READ)
    for frame in ("polars", "pandas")
]
WRITES = [wish for wish in WISHES if wish.operation is Operation.WRITE]
PLAIN_DATA, RICH_DATA, TYPED_DATA = "plain", "rich", "typed"
MARK = "'7f7d6b93-ee91-42e2-8020-b13260e45499'"
UUID = {"postgres": f"{MARK}::uuid", "clickhouse": f"toUUID({MARK})"}
FEW = 3  # programs of a request, if the test is not about the transport


def rich() -> pl.DataFrame:
    """Numbers, strings, dates, timestamps with and without a zone and decimals, each also with nulls."""
    start = dt.datetime(2025, 1, 1, 12)
    moments = pl.Series([start + dt.timedelta(hours=number) for number in range(ROWS)], dtype=pl.Datetime("us"))
    whole = pl.DataFrame(
        {
            "number": pl.Series(range(ROWS), dtype=pl.Int64),
            "small": pl.Series(range(ROWS), dtype=pl.Int16),
            "word": [f"word {number % 7}" for number in range(ROWS)],
            "ratio": [number / 4 for number in range(ROWS)],
            "day": moments.dt.date(),
            "moment": moments,
            "placed": moments.dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin"),
            "net": pl.Series([Decimal(number) / 4 for number in range(ROWS)], dtype=pl.Decimal(12, 2)),
        }
    )
    third = pl.int_range(ROWS) % 3 != 0
    return whole.with_row_index("id", 1).with_columns(
        pl.col("id").cast(pl.Int64), *(pl.when(third).then(name).alias(f"{name}_or_not") for name in whole.columns)
    )


@dataclass
class Made:
    """Data of 300 rows by their names, as files, and the lab they go to and come from."""

    data: dict[str, tuple[UserData, Path]]
    lab: EmbeddedLab

    def uri(self, endpoint: str, system: str) -> str:
        """Return the address that a user would give for the database; its tables are in the lab's namespace."""
        return SYSTEMS[system].client.transport_uri(endpoint, self.lab.endpoints[endpoint])


@pytest.fixture(scope="module")
def made(embedded_lab: EmbeddedLab, dataset_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    path = tmp_path_factory.mktemp("rich") / "rich.parquet"
    rich().write_parquet(path)
    built = Path(store.ensure(dataset_folder, "analytics_metrics", ROWS, 1).path)
    known = {PLAIN_DATA: built, RICH_DATA: path}
    return Made({name: (data.from_file(file), file) for name, file in known.items()}, embedded_lab)


@contextmanager
def opened(wish: Asked, made: Made) -> Iterator[Any]:
    client = SYSTEMS[wish.system].client
    connection = client.open_connection(made.lab.endpoints)
    client.ensure_namespace(connection)
    yield connection
    connection.close()


@pytest.fixture
def connection(made: Made, wish: Asked) -> Iterator[Any]:
    with opened(wish, made) as connection:
        yield connection


def load(wish: Asked, user_data: UserData, connection: Any, folder: Path) -> None:
    """Load data into the table to be read."""
    client, tables = SYSTEMS[wish.system].client, SYSTEMS[wish.system].tables
    client.create(connection, TO_READ, tables.definition(user_data.specification, PLAIN))
    user_data.frame.write_parquet(folder / "canonical.parquet")
    client.load(connection, TO_READ, folder / "canonical.parquet", user_data.logical_types)


def programs(
    wish: Asked,
    user_data: UserData,
    source: Source,
    folder: Path,
    few: int | None = None,
    without: Set[str] = frozenset(),
) -> dict[Path, Transport]:
    """Write the program of each transport that may win, for a new table or for the one to be read."""
    written = {}
    for number, entry in enumerate(eligible.divided(replace(wish, data=user_data))[0]):
        if entry.id in without or "pg_parquet" in entry.needs or entry.settings.get("async_insert") == "1":
            continue  # the embedded servers have no such extension, and collect no inserts
        won = cast(Figure, SimpleNamespace(transport=entry.id, seconds=0.25, runs=7, rows=ROWS))
        path = folder / f"program_{number}.py"
        table = TO_READ if wish.operation is Operation.READ else path.stem
        path.write_text(script.program(won, user_data, replace(source, folder=folder), table))
        written[path] = entry
        if few and len(written) == few:
            break
    return written


def variables(written: dict[Path, Transport], wish: Asked, made: Made) -> dict[str, str]:
    """Return the variables that programs expect in their environment."""
    making = SYSTEMS[wish.system]
    return {show.variable(entry): made.uri(entry.endpoint, entry.system) for entry in written.values()} | {
        making.script.VARIABLE: made.uri(making.addresses[0].name, wish.system)
    }


@pytest.mark.parametrize(
    "wish", [pytest.param(one, id=f"{one.system}-{one.operation}-{one.frame}@{n % 4}") for n, one in enumerate(WISHES)]
)
def test_the_program_of_every_transport_that_can_win_moves_every_value(
    wish: Asked,
    made: Made,
    connection: Any,
    scripts: Scripts,
    tmp_path: Path,
    lab: Command,
    on_embedded_lab: dict[str, str],
) -> None:
    """Programs run on rich data, and on plain data if a transport does not move the rich ones."""
    rich = moved(wish, RICH_DATA, made, connection, scripts, tmp_path)
    failed = {name: lines for name, lines in rich.items() if lines}
    assert failed.keys() <= cannot_win(failed, made.data[RICH_DATA][1], lab, on_embedded_lab), failed
    assert len(rich) > 9
    assert len(failed) < 10
    right = rich.keys() - failed.keys()
    plain = moved(wish, PLAIN_DATA, made, connection, scripts, tmp_path, right)
    assert {name: lines for name, lines in plain.items() if lines} == {}
    assert len(right | plain.keys()) > 20


def moved(
    wish: Asked,
    name: str,
    made: Made,
    connection: Any,
    scripts: Scripts,
    folder: Path,
    without: Set[str] = frozenset(),
) -> dict[str, list[str]]:
    """Run the programs of a wish on data of this name; see `run`."""
    client, (user_data, file) = SYSTEMS[wish.system].client, made.data[name]
    if wish.operation is Operation.READ:
        load(wish, user_data, connection, folder)
    written = programs(wish, user_data, Source(file), folder, without=without)
    wrong = run(written, wish, user_data, made, connection, scripts)
    client.drop(connection, TO_READ)
    assert len(written) - len(wrong) < 4
    return wrong


@pytest.mark.parametrize("wish", [pytest.param(one, id=f"{one.system}-{one.operation}-{one.frame}") for one in WISHES])
def test_a_program_moves_types_that_few_transports_know(
    wish: Asked, made: Made, connection: Any, scripts: Scripts, tmp_path: Path
) -> None:
    path = tmp_path / "typed.parquet"
    typed(wish.system, ROWS).write_parquet(path)
    with_types = replace(made, data={TYPED_DATA: (data.from_file(path), path)})
    tuned = {entry.id for entry in eligible.all_of(wish) if entry.function.__name__.endswith("_tuned")}
    others = {entry.id for entry in eligible.all_of(wish)} - tuned
    found = moved(wish, TYPED_DATA, with_types, connection, scripts, tmp_path, others)
    assert found == {name: [] for name in tuned}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "arrow", "arrows"])
def test_a_program_reads_the_file_whatever_its_form(suffix: str, made: Made, scripts: Scripts, tmp_path: Path) -> None:
    path, frame = tmp_path / f"data.{suffix}", rich()
    {
        "csv": frame.write_csv,
        "tsv": lambda file: frame.write_csv(file, separator="\t"),
        "arrow": frame.write_ipc,
        "arrows": frame.write_ipc_stream,
    }[suffix](path)
    user_data = data.from_file(path)
    for wish in WRITES:
        folder = tmp_path / f"{wish.system}_{wish.frame}"
        folder.mkdir()
        with opened(wish, made) as connection:
            found = run(
                programs(wish, user_data, Source(path), folder, FEW), wish, user_data, made, connection, scripts
            )
        assert {name: lines for name, lines in found.items() if lines} == {}
        assert found


@pytest.mark.parametrize("wish", [pytest.param(one, id=f"{one.system}-{one.frame}") for one in WRITES])
def test_a_program_asks_the_query_itself(wish: Asked, made: Made, scripts: Scripts, tmp_path: Path) -> None:
    client, (user_data, _) = SYSTEMS[wish.system].client, made.data[RICH_DATA]
    with opened(wish, made) as connection:
        load(wish, user_data, connection, tmp_path)
        query = f"SELECT *, {UUID[wish.system]} AS mark FROM {namespace()}.{TO_READ} WHERE id > 100"
        rows, query = SYSTEMS[wish.system].session.answer(made.lab.endpoints, query)
        asked = data.from_frame(reading.of_memory(rows))
        assert (asked.rows, asked.logical_types["net"][:7], asked.logical_types["placed"]) == (
            200,
            "decimal",
            "timestamp_tz",
        )
        found = run(programs(wish, asked, Source(query=query), tmp_path, FEW), wish, asked, made, connection, scripts)
        client.drop(connection, TO_READ)
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert found


def run(
    written: dict[Path, Transport], wish: Asked, user_data: UserData, made: Made, connection: Any, scripts: Scripts
) -> dict[str, list[str]]:
    """Run programs; return the faults by transport. A transport that refuses the data cannot win, and has no fault."""
    wrong = {}
    for path, entry in written.items():
        ended, found = scripts.printed(path, variables(written, wish, made), entry.requires)
        if "Unsupported: " in ended.err:
            continue
        if not ended.status and wish.operation is Operation.WRITE:
            assert found == f"{user_data.rows} rows written"
            found = SYSTEMS[wish.system].client.fetch(connection, path.stem)
        wrong[entry.id] = ended.err.splitlines()[-1:] if ended.status else unlike(user_data, found, wish)
    drop(wish.system, made, [path.stem for path in written if wish.operation is Operation.WRITE])
    return wrong


def cannot_win(failed: Iterable[str], file: Path, lab: Command, environment: dict[str, str]) -> set[str]:
    """Return which of these transports fail on the data in the lab itself: they are out of any race."""
    if not (only := ",".join(failed)):
        return set()
    run = ("run", "--data", str(file), "--external", "--experiment", "matrix", "--passes", "1", "--only", only)
    lab(*run, env=environment)
    (folder,) = Path(environment["LAB_RESULTS_DIR"]).glob("2*")
    return {row.transport for row in runs_csv.load(folder / "runs.csv") if not row.ok}


def unlike(user_data: UserData, found: Any, wish: Asked) -> list[str]:
    """Return the differences between the data and the frame that was read, or the table that was written."""
    actual, _ = canonicalise(found, user_data.logical_types)
    row_key = user_data.specification.row_key
    of_pandas = wish.frame == "pandas"  # which has one missing value, be it null or NaN
    return differences(user_data.frame.sort(row_key), actual, row_key, of_pandas)


def drop(system: str, made: Made, tables: list[str]) -> None:
    """Drop the tables that programs have made, which carry no mark of the lab."""
    for table in tables:
        statement = f"DROP TABLE IF EXISTS {namespace()}.{table}"
        if system == "postgres":
            with psycopg.connect(made.lab.endpoints["postgres"], autocommit=True) as direct:
                direct.execute(statement)  # type: ignore[arg-type]
        else:
            clickhouse.open_connection(made.lab.endpoints).command(statement)
