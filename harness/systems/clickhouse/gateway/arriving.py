"""A query's text while it arrives over the native protocol; it may include hundreds of megabytes of inline data."""

from collections.abc import Callable, Iterator

from .blocks import Block
from .errors import Code, refusal
from .sql import HEAD_BYTES, MAX_QUERY_BYTES
from .wire import Reader

_PIECE_BYTES = 1 << 20


class ArrivingText:
    """A query's text of a known length, then its parameters, then the Data packets of its external tables."""

    def __init__(
        self,
        reader: Reader,
        size: int,
        read_parameters: Callable[[], dict[str, str]],
        read_data: Callable[[], tuple[str, Block]],
        add_table: Callable[[str, Block], None],
    ) -> None:
        """Take the beginning of the text from the reader.

        ``read_parameters`` reads all parameters, ``read_data`` one Data packet. ``add_table`` receives each block of an
        external table, and its first error ends the query.
        """
        self._reader = reader
        self._read_parameters, self._read_data, self._add_table = read_parameters, read_data, add_table
        self._left = size
        self._drained = False
        self.parameters: dict[str, str] = {}  # none before the whole text has arrived
        self.beginning = self._piece(HEAD_BYTES)

    def _piece(self, most: int) -> bytes:
        data = self._reader.exact(min(self._left, most))
        self._left -= len(data)
        if not self._left:
            self.parameters = self._read_parameters()
        return data

    def whole(self) -> bytes:
        """Return the whole text. Raises ClickHouseError with code 229 if it is too long for a statement."""
        if self._left > MAX_QUERY_BYTES:
            size = len(self.beginning) + self._left
            raise refusal(Code.QUERY_IS_TOO_LARGE, f"Query of {size} bytes: longer than {MAX_QUERY_BYTES} bytes")
        return self.beginning + (self._piece(self._left) if self._left else b"")

    def has_payload(self, start: int) -> bool:
        """Return whether anything but white space and semicolons follows an offset."""
        return self._left > 0 or bool(self.beginning[start:].strip(b" \t\r\n;"))

    def payload(self, start: int) -> Iterator[bytes]:
        """Yield the text after an offset while it arrives, then read the packets that follow it.

        Raises ClickHouseError for an external table.
        """
        yield self.beginning[start:]
        while self._left:
            yield self._piece(_PIECE_BYTES)
        if self._next_data() is not None:
            raise refusal(Code.NOT_IMPLEMENTED, "External tables are not supported with inline data")

    def finish(self) -> None:
        """Read to the end of the query's packets, and make its external tables. Raises ClickHouseError."""
        while (packet := self._next_data()) is not None:
            self._add_table(*packet)

    def drain(self) -> None:
        """Read to the end of the query's packets and ignore them."""
        while self._left:
            self._piece(_PIECE_BYTES)
        while self._next_data() is not None:
            pass

    def _next_data(self) -> tuple[str, Block] | None:
        if self._drained:
            return None
        name, block = self._read_data()
        self._drained = not (name or block.columns)
        return None if self._drained else (name, block)
