"""The winner of a race as a complete program for one table: data, columns and address are in it, nothing of the lab."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent, indent

from harness import registry, show
from harness.check.kinds import pandas_dtype, plain, polars_dtype
from harness.datasets.own.data import OwnData
from harness.datasets.own.reading import form
from harness.datasets.specification import PLAIN
from harness.model import LabError, Operation, Transport
from harness.report.recommendation import Recommendation
from harness.systems import SYSTEMS

_READ = {
    "parquet": "polars.read_parquet(DATA, hive_partitioning=False)",
    "arrow": "polars.read_ipc(DATA)",
    "arrow_stream": "polars.read_ipc_stream(DATA)",
    "csv": "polars.read_csv(DATA, infer_schema_length=None, try_parse_dates=True)",
    "tsv": 'polars.read_csv(DATA, infer_schema_length=None, try_parse_dates=True, separator="\\t")',
}
_WITH_NULLS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]


def write(path: Path, found: Recommendation, data: OwnData, file: Path | None, table: str) -> None:
    """Write the fastest transport as a program; see `program`. Raises LabError."""
    try:
        path.write_text(program(found, data, file, table), encoding="utf-8")
    except OSError as error:
        raise LabError(f"cannot write the script {path}: {error.strerror}") from None


def program(found: Recommendation, data: OwnData, file: Path | None, table: str = "") -> str:
    """Return Python source that moves a file into a table, or a table into a frame, as the fastest transport does.

    It is called without arguments; the address stands in the environment. `table` is as the file is called if not
    given. Raises LabError for a transport that needs a folder or a bucket shared with the server.
    """
    entry = registry.one(found.fastest.transport)
    if entry.needs:
        raise LabError(f"{entry.id} needs {', '.join(entry.needs)}: lab show {entry.id} prints it with their arguments")
    table = table or re.sub(r"\W+", "_", file.stem if file else "frame").lower()
    parts = [_docstring(entry, found, file, table), show.body(entry, ("", "os"))]
    parts.append("\n".join(_constants(entry, data, file, table)))
    if entry.operation is Operation.WRITE:
        parts += [
            _load(entry.frame, data, form(file) if file else "parquet"),
            SYSTEMS[entry.system].script.CREATE_TABLE,
        ]
    return "\n\n\n".join([*parts, _main(entry)]) + "\n"


def _docstring(entry: Transport, found: Recommendation, file: Path | None, table: str) -> str:
    variables, needed = {show.variable(entry)}, {*found.fastest.packages, entry.frame}
    if entry.operation is Operation.WRITE:
        making = SYSTEMS[entry.system].script
        variables.add(making.VARIABLE)
        needed.update(making.PACKAGES, ("polars",), ("pyarrow",) if entry.frame == "pandas" else ())
    what = f"{file or 'a frame'} into the table {table}" if entry.operation is Operation.WRITE else f"the table {table}"
    lines = (
        f"Move {what}.",
        "",
        f"As {entry.id} does: the fastest exact transport of {found.rows:,} such rows.",
        "",
        f"The address stands in the environment: {' and '.join(sorted(variables))}.",
        f"Needs: {', '.join(sorted(needed))}.",
    )
    text = "\n".join(lines).replace("\\", "\\\\").replace('"""', '\\"""')
    return f'"""{text}\n"""'


def _constants(entry: Transport, data: OwnData, file: Path | None, table: str) -> list[str]:
    found = [f"TABLE = {table!r}"]
    if entry.operation is not Operation.WRITE:
        return found
    system = SYSTEMS[entry.system]
    definition = system.tables.definition(data.specification, PLAIN)
    if definition is None:
        raise LabError(f"{entry.system} has no table of these data")
    sql = definition.replace("{table}", system.sql.identifier(table), 1).replace(
        "CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1
    )
    where = str(file) if file else "frame.parquet"
    return [*found, f"DATA = {where!r}" + ("" if file else "  # your frame as Parquet"), f"CREATE_TABLE = {sql!r}"]


def _load(frame: str, data: OwnData, of_form: str) -> str:
    """Return the function that reads the file into the very frame that was measured."""
    casts = [(name, kind) for name, kind in data.kinds.items() if _may_differ(kind)]
    lines = [f"frame = {_READ[of_form]}"]
    if casts:
        series = ",\n    ".join(f"frame[{name!r}].cast(polars.{polars_dtype(kind)!r})" for name, kind in casts)
        lines.append(f"frame = frame.with_columns(\n    {series},\n)")
    if frame == "pandas":
        lines += _as_pandas(data)
    body = indent("\n".join([*lines, "return frame"]), "    ")
    imports = "import pandas\n    import polars" if frame == "pandas" else "import polars"
    return f'def load():\n    """Read the data as they were measured."""\n    {imports}\n\n{body}'


def _may_differ(kind: str) -> bool:
    """Say whether a column of this kind may stand in a file in another type than in the frame that was measured."""
    return plain(kind) in ("timestamp", "timestamp_tz", "category")


def _as_pandas(data: OwnData) -> list[str]:
    nulls = {name: data.frame[name].null_count() > 0 for name in data.kinds}
    dtypes = {name: pandas_dtype(kind, nulls[name]) for name, kind in data.kinds.items()}
    listed = ",\n    ".join(f"{name!r}: {dtype!r}" for name, dtype in dtypes.items() if dtype != "object")
    objects = [name for name, dtype in dtypes.items() if dtype == "object"]
    lines = [
        "columns = frame.to_arrow()",
        dedent("""\
        # Whole numbers beside nulls would become floats.
        nullable = {str(dtype).lower(): dtype for dtype in (pandas.%s())}""")
        % "(), pandas.".join(f"{name}Dtype" for name in _WITH_NULLS),
        'nullable["bool"] = pandas.BooleanDtype()',
        "frame = columns.to_pandas(types_mapper=lambda of: nullable.get(str(of)))",
        f"frame = frame.astype({{\n    {listed},\n}})" if listed else "",
    ]
    lines += [f"frame[{name!r}] = columns[{name!r}].to_pylist()" for name in objects]
    return [line for line in lines if line]


def _main(entry: Transport) -> str:
    name, wait = entry.function.__name__, "await " if entry.style == "async" else ""
    keyword = "async " if wait else ""
    uri = f'os.environ["{show.variable(entry)}"]'
    if entry.operation is Operation.WRITE:
        body = f"""\
    frame = load()
    create_table()
    {keyword}with connect({uri}) as connection:
        {wait}{name}(connection, frame, TABLE)
    print(f"{{len(frame)}} rows written")"""
    else:
        body = f"""\
    {keyword}with connect({uri}) as connection:
        frame = {wait}{name}(connection, TABLE)
    print(frame)"""
    call = "asyncio.run(main())" if wait else "main()"
    return f'{keyword}def main():\n{body}\n\n\nif __name__ == "__main__":\n    {call}'
