"""The errors of arrow-wire: each is an `Error`, and also an instance of the Python or driver class that it resembles.

    Error
    ├── UnsupportedType   (TypeError)        a type that cannot go into its column, or out of it
    ├── WrongValue        (ValueError)       a value, or a frame, that its table cannot hold: `column`, `row`
    │   └── DamagedStream                    bytes of a server that are no answer to the request
    ├── ServerError       (RuntimeError)     the server's error; for Postgres also of psycopg's class, with `sqlstate`
    │   └── Conflict                         another row or another session was in the way
    ├── Disconnected      (ConnectionError)  the connection broke
    └── CheckFailed       (RuntimeError)     a check of the compiled code itself: a fault of arrow-wire

After an error nothing was written. `Disconnected` is the exception: if the connection breaks while the server commits,
all rows may be there. If ClickHouse itself dies then, there may be some partitions: `clickhouse.write` says when. After
any other error the caller's connection can be used on, and its transaction is as it was before the call.
"""

from typing import Any

__all__ = [
    "CheckFailed",
    "Conflict",
    "DamagedStream",
    "Disconnected",
    "Error",
    "ServerError",
    "UnsupportedType",
    "WrongValue",
]

# Serialization failure, deadlock, lock not available, unique and exclusion violation, a table that is there already.
_CONFLICTS = frozenset(("40001", "40P01", "55P03", "23505", "23P01", "42P07"))

_BROKEN = ("08", "57P")  # connection exception, admin shutdown, crash shutdown


class Error(Exception):
    """The base of all errors of arrow-wire, except MemoryError and wrong arguments."""


class UnsupportedType(Error, TypeError):
    """A type of a frame or column that cannot be converted; the message names the column and types that fit."""


class WrongValue(Error, ValueError):
    """A value that its column cannot hold, or a frame that no table can.

    `column` is its name and `row` its number in the frame (or in the order of arrival). Both are None if the cause is
    no single value.
    """

    def __init__(self, text: str, column: str | None = None, row: int | None = None) -> None:
        super().__init__(text)
        self.column, self.row = column, row

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.column, self.row)


class DamagedStream(WrongValue):
    """The server sent bytes that are not rows of the requested columns, or that end too early."""


class ServerError(Error, RuntimeError):
    """The server answered with an error."""


class Conflict(ServerError):
    """Another row (a repeated key) or another session (a lock, a deadlock) was in the way."""


class CheckFailed(Error, RuntimeError):
    """A check of an index or a cast failed in the compiled code, which should have refused the input. Report it."""


class Disconnected(Error, ConnectionError):
    """There is no connection, or it broke. After a write all rows may be there, or none."""


def of_psycopg(error: Any) -> Error:
    """Return an error of psycopg as an error of arrow-wire that is also of its psycopg class."""
    if isinstance(error, Error):
        return error
    ours: type[Error] = Conflict if error.sqlstate in _CONFLICTS else ServerError
    operational = any(one.__name__ == "OperationalError" for one in type(error).__mro__)
    if operational and (error.sqlstate or "08").startswith(_BROKEN):
        ours = Disconnected
    made: Error = _both(ours, type(error))(*error.args)
    made.__dict__.update(error.__dict__)  # the server's full message: `diag`
    return made


_MADE: dict[tuple[type, type], Any] = {}


def _both(ours: type[Error], driver: type[Exception]) -> Any:
    def reduced(self: Any) -> tuple[Any, ...]:
        return _again, (ours, driver, self.args)

    parts = {"__module__": ours.__module__, "__reduce__": reduced}
    return _MADE.setdefault((ours, driver), type(ours.__name__, (ours, driver), parts))


def _again(ours: type[Error], driver: type[Exception], given: tuple[Any, ...]) -> Any:
    return _both(ours, driver)(*given)
