"""ClickHouse errors: their codes and names, and the HTTP status a ClickHouse server gives for each."""

import re
from enum import IntEnum

Code = IntEnum(
    "Code",
    {
        "AUTHENTICATION_FAILED": 516,
        "BAD_ARGUMENTS": 36,
        "CANNOT_DECOMPRESS": 271,
        "CANNOT_OPEN_FILE": 76,
        "CANNOT_READ_ALL_DATA": 33,
        "INCORRECT_DATA": 117,
        "INTO_OUTFILE_NOT_ALLOWED": 358,
        "INVALID_SESSION_TIMEOUT": 374,
        "LZ4_DECODER_FAILED": 618,
        "NOT_IMPLEMENTED": 48,
        "POCO_EXCEPTION": 1000,
        "QUERY_IS_TOO_LARGE": 229,
        "QUERY_WAS_CANCELLED": 394,
        "READONLY": 164,
        "SESSION_IS_LOCKED": 373,
        "SESSION_NOT_FOUND": 372,
        "SYNTAX_ERROR": 62,
        "TOO_LARGE_SIZE_COMPRESSED": 39,
        "UNEXPECTED_PACKET_FROM_CLIENT": 101,
        "UNKNOWN_CODEC": 432,
        "UNKNOWN_EXCEPTION": 1002,
        "UNKNOWN_FORMAT": 73,
        "UNKNOWN_SETTING": 115,
        "UNKNOWN_TYPE_OF_QUERY": 78,
        "ZLIB_INFLATE_FAILED": 354,
        "ZSTD_DECODER_FAILED": 561,
    },
)

# ClickHouse's src/Server/HTTP/exceptionCodeToHTTPStatus.cpp, as numbers; every code not listed returns 500.
_CODES_OF_HTTP_STATUS = {
    400: (6, 8, 15, 25, 26, 27, 36, 37, 38, 41, 44, 53, 62, 72, 117, 123, 167, 168, 223, 321, 376, 427, 441, 675, 676),
    401: (194,),
    403: (192, 193, 497, 512, 516),
    404: (46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 152, 336, 511),
    408: (159,),
    411: (381,),
    413: (229,),
    415: (779,),
    501: (48,),
    503: (76, 209, 439),
}
_HTTP_STATUS_OF_CODE = {code: status for status, codes in _CODES_OF_HTTP_STATUS.items() for code in codes}

_ENGINE_TEXT = re.compile(
    r"Code: (?P<code>\d+)\. (?:DB::Exception: )?(?P<text>.*?)(?: \(version [^()]*(?:\([^()]*\))?\))?\s*$", re.DOTALL
)
_REPEATED_TEXT = re.compile(
    r"Code: (?P<code>\d+)\. DB::Exception: (?P<text>.*) \(version [^()]*(?:\([^()]*\))?\)\. \([A-Z0-9_]+\)", re.DOTALL
)


class ClickHouseError(Exception):
    """An error with a ClickHouse code; ``text`` ends with the code's name, as in ``... (SYNTAX_ERROR)``."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"Code: {code}. DB::Exception: {text}")
        self.code = code
        self.text = text
        self.rest = b""  # of a result that the engine ended in spite of the error


def refusal(code: Code, text: str) -> ClickHouseError:
    """Build one of the gateway's errors, with the name of its code."""
    return ClickHouseError(code, f"{text} ({code.name})")


def from_engine(error: Exception) -> ClickHouseError:
    """Turn chdb's exception (code and name are only in its message) into a ClickHouseError."""
    # A message may quote non-UTF-8 data, which chdb then fails to return as a string.
    message = error.object.decode("utf-8", "replace") if isinstance(error, UnicodeDecodeError) else str(error)
    # Some Python versions (such as 3.11.2) then get no message from chdb 4.4.0.
    message = message or "the engine's own text is lost: it quotes bytes of the data that are not UTF-8"
    found = _ENGINE_TEXT.search(message)
    if found is None:
        return refusal(Code.UNKNOWN_EXCEPTION, message)
    code, text = int(found["code"]), found["text"]
    while inner := _REPEATED_TEXT.fullmatch(text):  # an engine thread wrapped the message again
        code, text = int(inner["code"]), inner["text"]
    return ClickHouseError(code, text)


def http_status(code: int) -> int:
    """Return the HTTP status that ClickHouse's HTTP handler gives for an error code."""
    return _HTTP_STATUS_OF_CODE.get(code, 500)
