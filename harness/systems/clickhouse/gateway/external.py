"""External tables: a client sends them with its query, and they are gone after it."""

from collections.abc import Callable

from . import transfer
from .blocks import Block
from .pipes import write_all
from .session import Session, definitions, quote_name
from .sql import InsertHead


class ExternalTables:
    """The external tables of one query, as temporary tables of its session."""

    def __init__(self, session: Session) -> None:
        """Begin without a table."""
        self._session = session
        self._names: list[str] = []

    def add(self, name: str, structure: str, format: str, pour: Callable[[int], None]) -> None:
        """Make a table with columns as in CREATE TABLE, and fill it with the data that ``pour`` writes into a pipe."""
        self._create(name, structure)
        self._fill(name, format, pour)

    def add_block(self, name: str, block: Block) -> None:
        """Add a native block to a table; its first block also makes it."""
        name = name or "_data"
        if name not in self._names:
            self._create(name, definitions(block.columns))
        if block.rows:
            self._fill(name, "Native", lambda pipe: write_all(pipe, (block.data,)))

    def close(self) -> None:
        """Remove the tables."""
        while self._names:
            self._session.drop_temporary(self._names.pop())

    def _create(self, name: str, structure: str) -> None:
        self._session.create_temporary(name, structure)
        self._names.append(name)

    def _fill(self, name: str, format: str, pour: Callable[[int], None]) -> None:
        into = quote_name(name)
        insert = InsertHead(f"INSERT INTO {into}", "", None, into, "*", format, 0)
        transfer.insert(self._session, insert, format, pour)
