"""The program of every transport that can win a race: each runs as it stands, and moves every value."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest

from harness import show
from harness.check.canonical import canonicalise
from harness.check.equality import differences
from harness.datasets import store
from harness.datasets.own import data
from harness.datasets.own.data import OwnData
from harness.datasets.specification import PLAIN
from harness.lab.embedded import EmbeddedLab
from harness.model import NAMESPACE, Operation, Transport
from harness.recommend import eligible, judging, script
from harness.recommend.eligible import Wish
from harness.report.recommendation import Recommendation
from harness.systems import SYSTEMS
from harness.systems.clickhouse import client as clickhouse
from tests.scripts import Scripts

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]  # some eighty programs a test
ROWS = 300
TO_READ = "program_read"
WISHES = [
    Wish(system, operation, frame)
    for system in SYSTEMS
    for operation in (Operation.WRITE, Operation.READ)
    for frame in ("polars", "pandas")
]


@dataclass
class Made:
    """Data of 300 rows without hostile values, as a file, and the lab they go to and come from."""

    own: OwnData
    file: Path
    lab: EmbeddedLab

    def uri(self, endpoint: str, system: str) -> str:
        """Return the address under which a person would name the database; its tables lie in the lab's namespace."""
        return SYSTEMS[system].client.transport_uri(endpoint, self.lab.endpoints[endpoint])


@pytest.fixture(scope="module")
def made(embedded_lab: EmbeddedLab, dataset_folder: Path) -> Made:
    built = store.ensure(dataset_folder, "analytics_metrics", ROWS, 1)
    return Made(data.from_file(Path(built.path)), Path(built.path), embedded_lab)


@pytest.fixture
def connection(made: Made, wish: Wish) -> Iterator[Any]:
    client = SYSTEMS[wish.system].client
    opened = client.open_connection(made.lab.endpoints)
    client.ensure_namespace(opened)
    yield opened
    opened.close()


def programs(wish: Wish, made: Made, folder: Path) -> dict[Path, Transport]:
    """Write the program of each transport that may win, for a table of its own or for the one to be read."""
    written = {}
    for number, entry in enumerate(eligible.divided(wish, made.own)[0]):
        if entry.needs or entry.settings.get("async_insert") == "1":  # the embedded server collects no inserts
            continue
        won = SimpleNamespace(transport=entry.id, packages=judging.packages(entry))
        found = cast(Recommendation, SimpleNamespace(fastest=won, rows=ROWS))
        path = folder / f"program_{number}.py"
        table = TO_READ if wish.operation is Operation.READ else path.stem
        path.write_text(script.program(found, made.own, made.file, table))
        written[path] = entry
    return written


def variables(written: dict[Path, Transport], wish: Wish, made: Made) -> dict[str, str]:
    """Return what programs expect in their environment."""
    making = SYSTEMS[wish.system]
    return {show.variable(entry): made.uri(entry.endpoint, entry.system) for entry in written.values()} | {
        making.script.VARIABLE: made.uri(making.addresses[0].name, wish.system)
    }


@pytest.mark.parametrize(
    "wish", [pytest.param(one, id=f"{one.system}-{one.operation}-{one.frame}@{n % 4}") for n, one in enumerate(WISHES)]
)
def test_the_program_of_every_transport_that_can_win_moves_every_value(
    wish: Wish, made: Made, connection: Any, scripts: Scripts, tmp_path: Path
) -> None:
    client, own = SYSTEMS[wish.system].client, made.own
    if wish.operation is Operation.READ:
        definition = SYSTEMS[wish.system].tables.definition(own.specification, PLAIN)
        assert definition
        client.create(connection, TO_READ, definition)
        client.load(connection, TO_READ, made.file, own.kinds)
    written = programs(wish, made, tmp_path)
    wrong, unsupported = {}, 0
    for path, entry in written.items():
        ended, found = scripts.printed(path, variables(written, wish, made))
        if "Unsupported: " in ended.err:  # it says that it cannot, so that it cannot win
            unsupported += 1
            continue
        if not ended.status and wish.operation is Operation.WRITE:
            assert found == f"{ROWS} rows written"
            found = client.fetch(connection, path.stem)
        wrong[entry.id] = ended.err.splitlines()[-1:] if ended.status else unlike(own, found, wish)
    assert {name: lines for name, lines in wrong.items() if lines} == {}
    assert len(wrong) > 20
    assert unsupported < 4
    client.drop(connection, TO_READ)
    drop(wish.system, made, [path.stem for path in written if wish.operation is Operation.WRITE])


def unlike(own: OwnData, found: Any, wish: Wish) -> list[str]:
    """Return what differs between the data and what came back, or lies in the table."""
    actual, _ = canonicalise(found, own.kinds)
    row_key = own.specification.row_key
    of_pandas = wish.frame == "pandas" and wish.operation is Operation.READ
    return differences(own.frame.sort(row_key), actual, row_key, of_pandas)


def drop(system: str, made: Made, tables: list[str]) -> None:
    """Drop what programs have made, which carries no mark of the lab."""
    for table in tables:
        statement = f"DROP TABLE IF EXISTS {NAMESPACE}.{table}"
        if system == "postgres":
            with psycopg.connect(made.lab.endpoints["postgres"], autocommit=True) as direct:
                direct.execute(statement)  # type: ignore[arg-type]
        else:
            clickhouse.open_connection(made.lab.endpoints).command(statement)
