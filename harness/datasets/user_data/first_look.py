"""The first look at a user's data: refusals that need none of the libraries that read them.

Their imports take most of the time of a refusal. The reader, which opens a CSV here too, refuses the same.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from harness.datasets.user_data import places
from harness.datasets.user_data.dialect import LOOKED_AT, UTF8, Dialect, lenient, require_regular, separator_of
from harness.datasets.user_data.encodings import decoded
from harness.datasets.user_data.options import Options
from harness.datasets.user_data.places import Part
from harness.model import LabError, unknown

_SMALL = 1 << 26  # bytes of a file that takes little time to open twice


@places.in_one_line()
def require(path: Path, options: Options, key: Sequence[str] = (), rows: int | None = None) -> None:
    """Raise LabError for data that are not there, for wrong lines at their start, and for names that they do not have.

    Also raise it for a sample of no `rows`.
    """
    require_rows(rows)
    if str(path) == places.STANDARD_INPUT:
        raw = places.standard_input(whole=False)
        part = places.of_standard_input(raw, path)
        require_delimited(part, options)
        names = [] if part.compression or part.form not in places.TEXTS else _of_text(raw, part, options, False)
    else:
        with places.parts(path) as found:
            part = found[0]
            require_delimited(part, options)
            names = _names(part, options, key)
    if names:
        require_columns(options, names)
        known = [*names, *(name for name, _ in part.hive)]
        for name in key:
            if name not in known:
                raise unknown("column for --key", name, known)


def _names(part: Part, options: Options, key: Sequence[str]) -> list[str]:
    """Return the names of a file's columns; none if they are not known without the libraries. Raises LabError."""
    if part.form == "parquet" and key:
        from pyarrow import ArrowException, parquet

        with suppress(ArrowException, OSError):  # the reader knows why
            return list(parquet.read_schema(part.path).names)
    if part.form not in places.TEXTS:
        return []
    whole = not part.compression and part.path.stat().st_size <= _SMALL
    return _of_text(part.content(None if whole else LOOKED_AT), part, options, whole)


def _of_text(raw: bytes, part: Part, options: Options, whole: bool) -> list[str]:
    """Return the names of a CSV's columns from its content, or its start. Raises LabError for what is wrong in it."""
    if not whole:  # only whole lines, and those of ASCII's kind
        raw = b"" if options.encoding or b"\0" in raw else raw[: raw.rfind(b"\n") + 1]
        while part.form in places.DELIMITED and raw.count(b'"') % 2:  # its last line ends within quotes
            raw = raw[: raw.rfind(b"\n", 0, -1) + 1]
        if not _without_lines(raw, options.skip_rows).strip():
            return []
    if part.form == "ndjson":
        require_utf8(raw, part.where)
        require_objects(raw if len(raw) <= LOOKED_AT else raw[: raw.rfind(b"\n", 0, LOOKED_AT) + 1], part.where)
        return []
    return opened(raw, part, options, whole)[2]


def require_rows(rows: int | None) -> None:
    """Raise LabError for a sample of no rows."""
    if rows is not None and rows < 1:
        raise LabError(f"rows {rows}: give a whole number of at least 1")


def require_delimited(part: Part, options: Options) -> None:
    """Raise LabError for options of a CSV with a file of another format."""
    if part.form not in places.DELIMITED and (given := options.given()):
        raise LabError(f"{', '.join(given)}: for CSV alone; {part.where} is {part.form.replace('_', ' ')}")


def require_columns(options: Options, names: Collection[str]) -> None:
    """Raise LabError for the type of a column that a CSV does not have."""
    if other := next((name for name in options.schema if name not in names), None):
        raise LabError(f'--schema: no column "{other}"; there are {", ".join(names)}')


def opened(raw: bytes, part: Part, options: Options, whole: bool = True) -> tuple[bytes, Dialect, list[str]]:
    """Return the lines of a CSV, or its first, in UTF-8, how to separate their cells, and the names of the columns.

    Raises LabError with the line, the column and the fix.
    """
    where, preferred = part.where, "\t" if part.form == "tsv" else ","
    raw, encoding = decoded(raw, where, options)
    raw = _without_lines(raw, options.skip_rows)
    if not raw.strip():
        raise LabError(f"{where} is empty{f' after {options.skip_rows} lines' if options.skip_rows else ''}")
    filled = raw.lstrip(b"\r\n")
    skipped = options.skip_rows + raw[: len(raw) - len(filled)].count(b"\n")
    dialect = Dialect(options.separator or separator_of(filled, preferred, options.decimal), encoding, skipped)
    names = _header(filled, dialect, where)
    dialect = replace(dialect, width=len(names))
    _require_end(filled, dialect, where)
    raw = _ended(filled)
    _require_rows(raw, dialect, where, whole)
    return raw, dialect, names


def _without_lines(raw: bytes, count: int) -> bytes:
    place = 0
    for _ in range(count):
        if not (place := raw.find(b"\n", place) + 1):
            return b""
    return raw[place:]


def _header(raw: bytes, dialect: Dialect, where: str) -> list[str]:
    """Return the names of the columns. Raises LabError for an empty or repeated name."""
    first = dialect.skip_rows + 1
    names = next(
        (record for record in lenient(raw[: 1 << 20].decode(errors="ignore"), dialect.separator) if record), []
    )
    for place, name in enumerate(names, start=1):
        if not name.strip():
            if names[0].startswith("sep="):
                raise LabError(f"{where}, line {first}: a separator for Excel, not names; give --skip-rows {first}")
            hint = "pandas writes its index so: write the file with index=False, or name the column in line"
            last = "it ends in a separator: take that away, or name the column in line"
            raise LabError(
                f"{where}, line {first}, column {place}: a column without a name; "
                f"{last if place == len(names) > 1 else hint} {first}"
            )
        if name in names[: place - 1]:
            raise LabError(
                f'{where}, line {first}, column {place}: two columns are named "{name}"; '
                "rename one, or skip lines before the names with --skip-rows"
            )
    return names


def _require_end(raw: bytes, dialect: Dialect, where: str) -> None:
    """Raise LabError if a file ends in an empty cell after a quoted one: pyarrow reads it as an empty string."""
    if raw.endswith(f'"{dialect.separator}'.encode()):
        line = raw.count(b"\n") + dialect.skip_rows + 1
        raise LabError(
            f"{where}, line {line}, column {dialect.width}: an empty cell and no end of line after it; end the file "
            "with a newline"
        )


def _ended(raw: bytes) -> bytes:
    """Return the bytes of a file without blank lines at its end."""
    end = raw[len(raw.rstrip(b"\r\n")) :]
    return raw[: len(raw) - len(end)] + end[: 2 if end[:2] == b"\r\n" else 1] if len(end) > 1 else raw


def _require_rows(raw: bytes, dialect: Dialect, where: str, whole: bool) -> None:
    """Raise LabError for a line near the beginning that is not like the header, and for a header alone."""
    short = len(raw) <= LOOKED_AT
    whole = whole and short
    records = [one for one in lenient(raw[:LOOKED_AT].decode(errors="ignore"), dialect.separator) if one]
    looked_at = records if short else records[:-1]  # the last may be cut off
    in_doubt = whole or any(len(record) != dialect.width for record in looked_at)
    if in_doubt and b'\\"' not in raw:  # which may escape a quote
        require_regular(raw, dialect, where)
    if whole and len(records) == 1:
        refuse_no_rows(dialect, where)


def refuse_no_rows(dialect: Dialect, where: str) -> None:
    """Raise LabError for a CSV of a header alone."""
    more = "" if dialect.encoding == UTF8 else "; give another --encoding or --separator"
    raise LabError(f"{where}: no rows after the column names in line {dialect.skip_rows + 1}{more}")


def require_utf8(raw: bytes, where: str) -> None:
    """Raise LabError with the first line of JSON that is not UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise LabError(f"{where}, line {line}: byte {raw[error.start]:#04x} is not UTF-8; save it as UTF-8") from None


def require_objects(raw: bytes, where: str) -> None:
    """Raise LabError with the first line that is not a JSON object."""
    for number, line in enumerate(raw.splitlines(), start=1):
        if line.strip():
            try:
                found = json.loads(line)
            except ValueError as error:
                raise LabError(f"{where}, line {number}: not JSON ({error}); write one object a line") from None
            if not isinstance(found, dict):
                raise LabError(f"{where}, line {number}: not a JSON object; write one object a line, {{...}}")
