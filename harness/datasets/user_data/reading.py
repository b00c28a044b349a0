"""A user's data as a polars frame: from files, or from memory; compared with its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from harness.datasets.user_data import cells, columnar, compared_cells, delimited, json_lines, memory, places
from harness.datasets.user_data.columnar import require_no_pattern
from harness.datasets.user_data.dialect import Cells
from harness.datasets.user_data.first_look import require_columns, require_delimited
from harness.datasets.user_data.options import Options
from harness.datasets.user_data.places import in_one_line
from harness.datasets.user_data.steps import Call, Program, Read, applied
from harness.model import LabError

of_memory = in_one_line()(memory.of_memory)


@in_one_line()
def read(path: Path, options: Options | None = None) -> Read:
    """Return the content of a file, a folder, a pattern's files or standard input (`-`). Raises LabError."""
    options = options or Options()
    with places.parts(path) as found:
        require_delimited(found[0], options)
        made = _delimited(found, options) if found[0].form in places.DELIMITED else _typed(found)
        pattern = places.pattern(path, found[0].path)
        return replace(made, program=replace(made.program, pattern=pattern, below=places.below(path)))


def _typed(found: Sequence[places.Part]) -> Read:
    """Return files of a typed format, one after the other."""
    if len({part.form for part in found}) > 1:
        raise LabError(f"{found[0].where} and other files: files of several forms; give a pattern that takes one form")
    several = [_one(part) for part in found]
    first = several[0]
    for part, one in zip(found, several, strict=True):
        if one.frame.schema != first.frame.schema:
            raise LabError(
                f"{part.where}: {_other(first.frame, one.frame)} than in {found[0].where}; cast it, or rename it"
            )
    names = tuple(name for name, _ in found[0].hive if name not in first.frame.columns)
    folders = [_of_folders(part, one.frame.height, names) for part, one in zip(found, several, strict=True)]
    made = {name: cells.typed(pl.concat([one[name] for one in folders]), Options()) for name in names}
    frame = pl.concat([one.frame for one in several]).with_columns([one.column for one in made.values()])
    program = replace(first.program, columns=_spelled({name: one.steps for name, one in made.items()}), hive=names)
    return replace(first, frame=frame, program=program, compared=_together([one.compared for one in several]))


def _one(part: places.Part) -> Read:
    if part.form == "ndjson":
        frame, compared = json_lines.read(part.content(), part.where)
        return Read(frame, Program(('frame = polars.read_ndjson(open({}, "rb"), infer_schema_length=None)',)), compared)
    return columnar.read(part.path, part.form, part.where)


def _other(first: pl.DataFrame, other: pl.DataFrame) -> str:
    if first.columns != other.columns:
        return f"other columns ({', '.join(sorted(set(first.columns) ^ set(other.columns))) or 'in another order'})"
    name = next(name for name in first.columns if first[name].dtype != other[name].dtype)
    return f'column "{name}" is {other[name].dtype}, another type ({first[name].dtype})'


def _of_folders(part: places.Part, rows: int, names: Sequence[str]) -> pl.DataFrame:
    values = dict(part.hive)
    return pl.DataFrame([pl.Series(name, [values[name]], pl.String).new_from_index(0, rows) for name in names])


def _together(compared: Sequence[str]) -> str:
    return compared[0] if len(set(compared)) == 1 else f"of each of {len(compared)} files a part, or every value"


def _delimited(found: Sequence[places.Part], options: Options) -> Read:
    """Return CSV files, whose columns get one type each for all files."""
    several = [delimited.cells(part, options) for part in found]
    first = several[0]
    for one in several:
        if one.table.column_names != first.table.column_names or _as_dialect(one) != _as_dialect(first):
            raise LabError(
                f"{one.where}: other columns, encoding or separators than {first.where}; read them one by one"
            )
    names = first.table.column_names
    require_no_pattern(names, first.where)
    require_columns(options, names)
    extra = [name for name, _ in found[0].hive if name not in names]
    written = pl.concat([pl.DataFrame(pl.from_arrow(one.table)) for one in several], rechunk=False)
    folders = [_of_folders(part, one.table.num_rows, extra) for part, one in zip(found, several, strict=True)]
    if extra:
        written = written.hstack(pl.concat(folders).get_columns())
    made = {column.name: _column(column, options, several) for column in written}
    frame = pl.DataFrame([one.column for one in made.values()])
    steps = {name: one.steps for name, one in made.items()}
    compared, row = [], 0
    for one in several:
        piece = frame.slice(row, one.table.num_rows)[names]  # `select` reads * as all columns
        compared.append(compared_cells.require_same(one, piece, steps, options))
        row += one.table.num_rows
    notes = [note for one in several for note in one.notes] + [one.note for one in made.values() if one.note]
    program = Program(_lines(first, found[0]), _spelled(steps), hive=tuple(extra))
    return Read(frame, program, _together(compared), tuple(notes))


def _as_dialect(one: Cells) -> tuple[str, str, str, int]:
    return one.dialect.separator, one.dialect.encoding, one.dialect.escape, one.dialect.skip_rows


def _column(column: pl.Series, options: Options, several: Sequence[Cells]) -> cells.Typed:
    """Return a column of cells with its inferred or requested type. Raises LabError with the line."""
    nulls: tuple[Call, ...] = ()
    if options.null_values and column.is_in(list(options.null_values)).any():
        nulls = (Call("replace", (dict.fromkeys(options.null_values),)),)
    values = applied(column, nulls)
    logical = options.schema.get(column.name, "")
    made = cells.asked(values, logical, options) if logical else cells.typed(values, options)
    if made.misfit is not None:
        row, which = made.misfit, next(iter(several))
        for which in several:
            if row < which.table.num_rows:
                break
            row -= which.table.num_rows
        raise LabError(
            f'{which.where}, line {which.line(row)}, column "{column.name}": {column[made.misfit][:40]!r} is no '
            f"{logical}; give another --schema, --date-format or --null-values"
        )
    return replace(made, steps=(*nulls, *made.steps))


def _spelled(steps: Mapping[str, Sequence[Call]]) -> tuple[str, ...]:
    """Return the expressions that convert columns: one for all columns with the same steps."""
    named: dict[str, list[str]] = {}
    for name, of_column in steps.items():
        if of_column:
            named.setdefault("".join(map(str, of_column)), []).append(name)
    return tuple(
        f"frame[{names[0]!r}]{made}" if len(names) == 1 else f"*(frame[name]{made} for name in {names!r})"
        for made, names in named.items()
    )


def _lines(one: Cells, part: places.Part) -> tuple[str, ...]:
    """Return the lines of a program that read a CSV as strings: see `delimited.options_of_arrow`."""
    dialect, names = one.dialect, one.table.column_names
    reads = [f"encoding={dialect.encoding!r}"] if dialect.encoding != "utf-8" else []
    reads += [f"skip_rows={dialect.skip_rows}"] if dialect.skip_rows else []
    parses = [f"delimiter={dialect.separator!r}", "newlines_in_values=True"]
    parses += [f"escape_char={dialect.escape!r}", "double_quote=False"] if dialect.escape else []
    parses += ["ignore_empty_lines=False"] if dialect.blank_is_null else []
    file = "{}"
    if part.compression != places.COMPRESSED.get(part.path.suffix, ""):  # by which pyarrow goes
        file = f"pyarrow.input_stream({{}}, compression={part.compression or None!r})"
    lines = [
        "import pyarrow.csv",
        "table = pyarrow.csv.read_csv(",
        f"    {file},",
        f"    pyarrow.csv.ReadOptions({', '.join([*reads, 'block_size=1 << 22'])}),",
        f"    pyarrow.csv.ParseOptions({', '.join(parses)}),",
        "    pyarrow.csv.ConvertOptions(",
        f"        column_types=dict.fromkeys({_braced(names)}, pyarrow.large_string()),",
        '        null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False,',
        "    ),",
        ")",
    ]
    if dialect.blank_is_null:
        lines += ["while table.num_rows and table[0][-1].as_py() is None:", "    table = table[:-1]  # blank lines"]
    return (*lines, "frame = polars.from_arrow(table)")


def _braced(names: Sequence[str]) -> str:
    """Return names as source with braces escaped for `str.format`."""
    return repr(list(names)).replace("{", "{{").replace("}", "}}")
