"""The bytes of a text file in UTF-8: by byte order mark or the user's option, or an error with line and column."""

from __future__ import annotations

import codecs
import csv

from harness.datasets.user_data.dialect import LOOKED_AT, UTF8, separator_of
from harness.datasets.user_data.options import Options
from harness.model import LabError

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_PIECE = 1 << 24


def decoded(raw: bytes, where: str, options: Options) -> tuple[bytes, str]:
    """Return the bytes of a file in UTF-8 without a byte order mark, and the encoding that it had."""
    mark = next((mark for mark in _MARKS if raw.startswith(mark)), b"")
    encoding = options.encoding or _MARKS.get(mark, UTF8)
    known = codecs.lookup(encoding).name
    if mark and (_MARKS[mark].startswith(known) or known == "utf-8-sig"):
        raw, known = raw[len(mark) :], _MARKS[mark]
    elif mark:
        raise LabError(f"{where}: its byte order mark is of {_MARKS[mark]}, not of {encoding}; leave --encoding out")
    if known == UTF8:
        _require_utf8(raw, where, options)
        return raw, known
    try:
        return raw.decode(known).encode(), known
    except UnicodeError as error:
        line = raw[: getattr(error, "start", 0)].count(b"\n") + 1
        raise LabError(
            f"{where}, line {line}: bytes that are no {encoding}; give another --encoding, such as utf-8, cp1252 or "
            "utf-16"
        ) from None


def _require_utf8(raw: bytes, where: str, options: Options) -> None:
    if raw[:LOOKED_AT].count(0) > len(raw[:LOOKED_AT]) // 4:
        which = "utf-16-le" if raw[1:LOOKED_AT:2].count(0) > raw[:LOOKED_AT:2].count(0) else "utf-16-be"
        raise LabError(f"{where}, line 1: every other byte is zero, as in UTF-16; give --encoding {which}")
    decoder = codecs.getincrementaldecoder(UTF8)()
    for start in range(0, max(len(raw), 1), _PIECE):
        piece = raw[start : start + _PIECE]
        try:
            decoder.decode(piece, start + _PIECE >= len(raw))
        except UnicodeDecodeError:
            _refuse_encoding(raw, where, options)


def _refuse_encoding(raw: bytes, where: str, options: Options) -> None:
    """Raise LabError with the line and column of the first bytes that are not UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        start = error.start
        of_line = raw.rfind(b"\n", 0, start) + 1
        line, before = raw.count(b"\n", 0, start) + 1, raw[of_line:start].decode()
        separator = options.separator or separator_of(raw[:of_line] or raw[:start], ",", options.decimal)
        column = len(next(csv.reader([before], delimiter=separator), [""]))
        raise LabError(
            f"{where}, line {line}, column {column}: byte {raw[start]:#04x} is not UTF-8; say how the file is encoded, "
            "such as --encoding cp1252 or latin-1"
        ) from None
