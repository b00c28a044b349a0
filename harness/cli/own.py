"""Somebody's own data on the command line: a file, or a query that is read once through the reference client."""

from dataclasses import replace
from pathlib import Path

from harness import settings
from harness.datasets.own import data
from harness.datasets.own.data import OwnData
from harness.model import LabError
from harness.run.lock import require_free


def own_data(
    chosen: settings.Settings,
    file: Path | None,
    query: str | None,
    key: str,
    rows: int | None,
    names: bool,
    system: str,
) -> OwnData:
    """Return the data of a file, or of a query to the database that is named in the environment. Raises LabError."""
    if (file is None) == (query is None):
        raise LabError("expected --data FILE or --query SQL, found both" if file else "expected --data or --query")
    require_free(chosen.lock_folder)  # a large file takes a while to read
    columns = tuple(name.strip() for name in key.split(",") if name.strip())
    if file is not None:
        return data.from_file(file, columns, rows, names)
    from harness.lab.asked import frame_of

    frame, asked = frame_of(chosen, str(query), system)
    return replace(data.from_frame(frame, columns, rows, names), query=asked)
