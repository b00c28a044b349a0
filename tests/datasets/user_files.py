"""Files of a user's data, and the frames that their programs read."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc, parquet

from harness.datasets import lineitem
from harness.datasets.lineitem import Layout, LineitemFile
from harness.datasets.user_data import data
from harness.recommend import script


def written(table: pa.Table, path: Path) -> Path:
    """Write a table in the format of the file's name."""
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        with (ipc.new_file if path.suffix == ".arrow" else ipc.new_stream)(str(path), table.schema) as writer:
            writer.write_table(table)
    return path


def loaded(library: str, own: data.UserData, path: Path) -> Any:
    """Return the frame that the program of a file makes."""
    made: dict[str, Any] = {}
    exec(script.load(library, own, script.Source(path), ""), {"DATA": str(path)}, made)
    return made["load"]()


def ensure(folder: Path, layout: Layout) -> LineitemFile:
    return lineitem.ensure_all(folder, [layout], print)[layout]
