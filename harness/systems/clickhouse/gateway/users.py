"""The allowed users, read from a JSON file so that no password appears in the process list."""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import Code, refusal


class UsersFileError(Exception):
    """The users file cannot be used."""


@dataclass(frozen=True, repr=False)
class Users:
    """User names and passwords; has no repr, so that no password is ever printed."""

    passwords: Mapping[str, str]

    def check(self, user: str, password: str) -> None:
        """Raise ClickHouseError with code 516 for a wrong password; takes the same time either way."""
        expected = self.passwords.get(user)
        given = password.encode("utf-8", "surrogateescape")
        matches = hmac.compare_digest((expected or "").encode("utf-8", "surrogateescape"), given)
        if expected is None or not matches:
            raise refusal(
                Code.AUTHENTICATION_FAILED,
                f"{user}: Authentication failed: password is incorrect, or there is no user with such name.",
            )


def read_users(path: Path) -> Users:
    """Read ``{"user": "password", ...}``. Raises UsersFileError with one line that never shows the content."""
    needed = 'write a JSON object like {"user": "password"} with at least one user'
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsersFileError(f"users file {path}: {error.strerror}; {needed}") from error
    except ValueError:
        raise UsersFileError(f"users file {path}: not JSON; {needed}") from None
    if not isinstance(content, dict) or not content or not all(isinstance(value, str) for value in content.values()):
        raise UsersFileError(f"users file {path}: {needed}")
    return Users(content)
