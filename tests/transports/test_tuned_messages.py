"""Messages of the tuned transports about a frame or a table they cannot take: the column, the problem, the fix."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import polars as pl
import pytest
from arrow_wire import UnsupportedType

from harness.lab.embedded import EmbeddedLab
from harness.registry import one
from tests.calls import call
from tests.streams import opened

# System -> the client of its tuned transports, and a table.
SYSTEMS = {
    "postgres": ("psycopg", "CREATE TABLE {table} (id uuid, number integer, yes boolean, text text)"),
    "clickhouse": (
        "http_client",
        "CREATE TABLE {table} (id UUID, number Int32, yes Bool, text Nullable(String)) ENGINE = Memory",
    ),
}
OBJECTS = [uuid.UUID(int=number) for number in (0, 2**127)]
Tuned = Callable[..., Any]


@pytest.fixture(params=SYSTEMS)
def tuned(request: pytest.FixtureRequest, embedded_lab: EmbeddedLab) -> Iterator[Tuned]:
    """Call a tuned transport of each system, which has the table `messages`."""
    client, definition = SYSTEMS[request.param]
    with opened(request.param, embedded_lab) as server:
        server.make("messages", definition)
        yield lambda name, *given: call(one(f"{request.param}.{client}.{name}_tuned"), embedded_lab, *given)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pl.DataFrame(), "the frame has no columns; give it columns of the table"),
        (pd.DataFrame(), "the frame has no columns; give it columns of the table"),
        (
            pd.DataFrame([[1, 2]], columns=["number", "number"]),
            'column "number": 2 columns have this name; rename or drop one',
        ),
        (pd.DataFrame({0: [1]}), "column 0: its name is of int instead of str; rename it"),
    ],
)
def test_a_frame_without_proper_names_is_refused(frame, message, tuned):
    library = "polars" if isinstance(frame, pl.DataFrame) else "pandas"
    with pytest.raises(ValueError, match=f"^{message}$"):
        tuned(f"write_{library}", frame, "messages")


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_uuid_objects_are_refused_and_their_column_named(library, tuned):
    frame = pl.DataFrame({"text": pl.Series(OBJECTS, dtype=pl.Object)})
    with pytest.raises(UnsupportedType, match=r'^column "text": .* fit .*; make strings of them with str'):
        tuned(f"write_{library}", frame if library == "polars" else pd.DataFrame({"text": OBJECTS}), "messages")


@pytest.mark.parametrize("tuned", ["postgres"], indirect=True)
@pytest.mark.parametrize("frame", [pl.DataFrame({"yes": [None, None]}), pd.DataFrame({"yes": [None, None]})])
def test_a_boolean_column_of_nulls_alone_is_written(frame, tuned):
    tuned("write_polars" if isinstance(frame, pl.DataFrame) else "write_pandas", frame, "messages")
    assert tuned("read_polars", "messages")["yes"].to_list() == [None, None]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_uuid_objects_are_written_as_uuids(library, tuned):
    columns = {"number": [1, 2], "yes": [True, False]}
    frame = pl.DataFrame({"id": pl.Series(OBJECTS, dtype=pl.Object), **columns})
    tuned(f"write_{library}", frame if library == "polars" else pd.DataFrame({"id": OBJECTS, **columns}), "messages")
    assert sorted(tuned("read_polars", "messages")["id"]) == [str(one) for one in OBJECTS]
