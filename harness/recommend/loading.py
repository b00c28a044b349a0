"""The part of a program that makes the frame from a file or a query: the same frame that was measured."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import polars as pl

from harness.check.logical_types import is_wide, items, pandas_dtype, plain, polars_dtype
from harness.datasets.user_data.data import UserData

_AS_STRINGS = """\
for name in {!r}:  # polars has no decimals of so many digits
    digits = [None if number is None else format(number, "f") for number in table[name].to_pylist()]
    table = table.set_column(table.schema.get_field_index(name), name, pyarrow.array(digits, pyarrow.large_string()))"""
_FOLDER_VALUE = """\

def folder_value(text):
    none = text == "__HIVE_DEFAULT_PARTITION__"
    return polars.lit(None if none else unquote(text), polars.String)

"""
_DECIMAL = "None if text is None else decimal.Decimal(text)"
_FROM_ARROW = "frame = polars.from_arrow(table)"
_WITH_NULLS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]


@dataclass(frozen=True)
class Source:
    """The source of a program's data: a file, or a query to the database that it writes to.

    The path of a file, or the `pattern` of several, is relative to the folder of the program, `beside`.
    """

    file: Path | None = None
    query: str = ""
    pattern: str = ""
    beside: Path = Path()

    @property
    def constant(self) -> str:
        """The line of the program that names it."""
        if self.file is None:
            return f"QUERY = {self.query!r}"
        here = "os.path.dirname(os.path.abspath(__file__))"
        return f"DATA = os.path.join({f'glob.escape({here})' if self.pattern else here}, {self._named!r})"

    @property
    def _named(self) -> str:
        beside = str(self.beside.absolute())
        if self.pattern:
            return os.path.relpath(self.pattern, glob.escape(beside))
        return os.path.relpath(self.file or "", beside)

    @property
    def table(self) -> str:
        """The name of a table that the user did not name."""
        return self.file.name.partition(".")[0] if self.file else "frame"

    def __str__(self) -> str:
        return self._named if self.file else "the rows of a query"


def load(frame: str, data: UserData, source: Source, select: str) -> str:
    """Return the source of the function `load`, which returns the frame that was measured.

    `select` asks for the rows of a query.
    """
    lines = _read(source, data) if source.file else [*select.splitlines(), _FROM_ARROW]
    if casts := [cast for name in data.logical_types if (cast := _cast(name, data, bool(source.query)))]:
        lines.append(_with_columns(casts))
    if frame == "pandas":
        lines += _as_pandas(data)
    *before, last = lines
    last = f"return {last.removeprefix('frame = ')}" if last.startswith("frame = ") else f"{last}\nreturn frame"
    body = indent("\n".join([*before, last]), "    ")
    imports = "import pandas\n    import polars" if frame == "pandas" else "import polars"
    if frame == "pandas" and any(map(is_wide, data.logical_types.values())):
        imports = f"import decimal\n\n    {imports}"
    gap = "\n" if body.lstrip().startswith(("import ", "from ")) else "\n\n"
    return f'def load():\n    """Return the data as they were measured."""\n    {imports}{gap}{body}'


def _read(source: Source, data: UserData) -> list[str]:
    """Return the lines that read the data, as they were read."""
    if not data.program.pattern:
        return [*_one_file(data, "DATA"), *_columns(data)]
    hive = data.program.hive
    links = [
        "    folders = [path.rsplit(os.sep, up)[0] for up in range(1, len(names))]",
        "    if any(map(os.path.islink, folders)):",
        "        continue  # may lead to files that are here, too",
    ]
    in_folders = [
        "named = (part.partition('=') for part in os.path.dirname(path).split(os.sep))",
        "parts = {unquote(name): value for name, _, value in named}",
        f"frame = frame.with_columns([folder_value(parts[name]).alias(name) for name in {list(hive)!r}])",
    ]
    lines = [*_one_file(data, "path"), *(in_folders if hive else []), "frames.append(frame)"]
    return [
        *(["from urllib.parse import unquote", *_FOLDER_VALUE.splitlines()] if hive else []),
        "frames = []",
        "for path in sorted(glob.glob(DATA, recursive=True)):",
        f"    names = path.split(os.sep)[DATA.count(os.sep) - {data.program.below - 1} :]",
        "    if any(name.startswith('_') and '=' not in name for name in names):",
        "        continue  # hidden, as Spark's",
        *(links if "**" in Path(data.program.pattern).parts else []),
        *(f"    {line}" for line in lines),
        "frame = polars.concat(frames)",
        *_columns(data),
    ]


def _columns(data: UserData) -> list[str]:
    return [_with_columns(data.program.columns)] if data.program.columns else []


def _with_columns(made: Iterable[str]) -> str:
    lines = _on_few_lines(made)
    return f"frame = frame.with_columns(\n    {lines},\n)" if "\n" in lines else f"frame = frame.with_columns({lines})"


def _one_file(data: UserData, path: str) -> list[str]:
    """Return the lines that read a file: through Arrow if polars does not know a zone or such wide decimals."""
    program = data.program
    lines = [line.format(path) for line in program.lines]
    if lines[-1].startswith("frame = "):
        return lines
    strings = [name for name in program.wide if is_wide(data.logical_types[name])]
    narrow = [name for name in program.wide if name not in strings]
    others = {
        'field.with_type(pyarrow.timestamp(field.type.unit, "UTC"))': list(program.offsets),
        "field.with_type(pyarrow.decimal128(38, field.type.scale))": narrow,
    }
    if not any(others.values()):
        return [
            *lines,
            *(["import pyarrow", *_AS_STRINGS.format(strings).splitlines()] if strings else []),
            _FROM_ARROW,
        ]
    return [
        "import pyarrow",
        *lines,
        *(_AS_STRINGS.format(strings).splitlines() if strings else []),
        "fields = [",
        *(f"    {made} if field.name in {names!r} else" for made, names in others.items() if names),
        "    field",
        "    for field in table.schema",
        "]",
        "frame = polars.from_arrow(table.cast(pyarrow.schema(fields)))",
    ]


def _cast(name: str, data: UserData, asked: bool) -> str:
    """Return the expression that makes a column canonical; empty if it already is.

    The driver may return bytes that were `asked` for as strings: a ClickHouse String can have any content.
    """
    logical, given = data.logical_types[name], data.given[name]
    wanted = polars_dtype(logical)
    column = f"frame[{name!r}]"
    if isinstance(given, pl.BaseExtension):
        if "uuid" in str(given):  # Arrow's type for them: polars takes its bytes
            return _as_strings(column, logical)
        if is_wide(logical) and not asked:
            return ""  # they are strings already
        return f"{column}.ext.storage().cast({_source(wanted)})"
    if given == wanted and not (asked and "binary" in logical):
        return ""
    if isinstance(given, pl.Enum):  # polars casts it to a category by its number
        column += ".cast(polars.String)"
    return f"{column}.cast({_source(wanted)})"


def _as_strings(uuids: str, logical: str) -> str:
    """Return the expression that turns bytes into UUIDs as strings, also in lists."""
    if plain(logical) == "array":
        return f"{uuids}.list.eval({_as_strings('polars.element()', items(logical))})"
    return uuids + r'.bin.encode("hex").str.replace(r"^(.{8})(.{4})(.{4})(.{4})", "$1-$2-$3-$4-")'


def _source(dtype: pl.DataType) -> str:
    if isinstance(dtype, pl.List):
        return f"polars.List({_source(dtype.inner)})"  # type: ignore[arg-type]
    if isinstance(dtype, pl.Map):
        return f"polars.Map({_source(dtype.key)}, {_source(dtype.value)})"  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        fields = ", ".join(f"{field.name!r}: {_source(field.dtype)}" for field in dtype.fields)  # type: ignore[arg-type]
        return f"polars.Struct({{{fields}}})"
    return f"polars.{dtype!r}"


def _as_pandas(data: UserData) -> list[str]:
    dtypes = {name: pandas_dtype(logical, data.has_nulls(name)) for name, logical in data.logical_types.items()}
    unlike = [name for name, dtype in dtypes.items() if not _as_arrow_has_it(data.logical_types[name], dtype)]
    listed = _on_few_lines([f"{name!r}: {dtypes[name]!r}" for name in unlike])
    objects = [name for name, dtype in dtypes.items() if dtype == "object"]
    dtypes_with_nulls = {name.lower(): name for name in dtypes.values() if name in _WITH_NULLS}
    if "boolean" in dtypes.values():
        dtypes_with_nulls["bool"] = "Boolean"
    nullable = ", ".join(f'"{plain}": pandas.{name}Dtype()' for plain, name in dtypes_with_nulls.items())
    wide = [name for name in objects if is_wide(data.logical_types[name])]
    typed = f".astype({{\n    {listed},\n}})" if listed else ""
    lines = [
        f"objects = {{name: frame[name].to_list() for name in {objects!r}}}" if objects else "",
        *(f"objects[{name!r}] = [{_DECIMAL} for text in objects[{name!r}]]" for name in wide),
        "# A copy: the memory of Arrow is read-only, and a client may write to it."
        + (" Numbers with nulls would become floats." if nullable else ""),
        "frame = frame.to_arrow().to_pandas({}).copy()".format(
            f"types_mapper=lambda of: {{{nullable}}}.get(str(of))" if nullable else ""
        ),
        f"frame = frame{typed}{'.assign(**objects)' if objects else ''}" if typed or objects else "",
    ]
    return [line for line in lines if line]


def _as_arrow_has_it(logical: str, dtype: str) -> bool:
    """Whether pandas gets a column from Arrow with its dtype, or as objects."""
    return dtype in ("object", "float32", "float64", "boolean", *_WITH_NULLS) or logical.startswith("timestamp")


def _on_few_lines(items: Iterable[str]) -> str:
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) < 100:
            lines[-1] += f", {item}"
        else:
            lines.append(item)
    return ",\n    ".join(lines)
