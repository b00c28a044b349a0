"""Addresses of servers: parse URIs, name them in messages, and keep passwords out of all output."""

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from harness.model import LabError

CONNECT_SECONDS = 5  # an unreachable server is reported within this time


@dataclass(frozen=True)
class Tls:
    """How a URI says whether its connections have TLS, and the messages before TLS begins.

    `scheme` is the scheme of a URI with TLS, if the scheme says it. `query` has the parameters without TLS and with it.
    The lab replaces {certificate} in it by the file of the certificate to trust, if a client reads it from there. A
    client sends `request` first and waits for the server's `answer`; both are empty if TLS begins at once.
    """

    scheme: str = ""
    query: tuple[str, str] = ("", "")
    request: bytes = b""
    answer: bytes = b""

    def in_uri(self, uri: str, on: bool, certificate: str = "") -> str:
        """Return a URI without TLS as one that tells clients to use TLS, or not to."""
        parts = urlsplit(uri)
        if said := self.query[on]:
            query = dict(parse_qsl(parts.query))
            query |= {name: value.format(certificate=certificate) for name, value in parse_qsl(said)}
            parts = parts._replace(query=urlencode(query, quote_via=quote))
        return parts._replace(scheme=self.scheme if on and self.scheme else parts.scheme).geturl()


@dataclass(frozen=True)
class Address:
    """An address of a database.

    `name` is its name in transports. `setting` is the variable (`LAB_...`, without the prefix and in lower case) in
    which a user names theirs, and `meaning` the line that explains it. `schemes` are the schemes of its URIs, and
    `port` is the default port; files have no port. `tls` is None if no known client uses TLS.
    """

    name: str
    setting: str
    meaning: str
    schemes: tuple[str, ...]
    port: int = 0
    tls: Tls | None = None

    @property
    def variable(self) -> str:
        """The variable in which a person names it, for the lab and for a printed script."""
        return f"LAB_{self.setting.upper()}"

    @property
    def example(self) -> str:
        """An example of such a URI."""
        return f"{self.schemes[0]}://user:password@127.0.0.1:{self.port}"


def split(uri: str, address: Address) -> SplitResult:
    """Parse a URI. Raises LabError naming the setting if scheme or host is missing or the port is not a number."""
    try:
        parts = urlsplit(uri)
        valid = parts.scheme in address.schemes and bool(parts.hostname) and (parts.port or address.port) > 0
    except ValueError:
        valid = False
    if not valid:
        raise LabError(f"{address.variable}: not a URI like {address.example}; check the scheme, host and port")
    return parts


def reach(parts: SplitResult, address: Address) -> None:
    """Open and close a TCP connection. Raises LabError naming host and port if there is no answer within 5 s."""
    host, port = parts.hostname or "", parts.port or address.port
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except (OSError, UnicodeError) as error:  # UnicodeError: an invalid host name, such as "a..b"
        said = getattr(error, "strerror", None) or str(error)
        reason = "no answer within 5 s" if isinstance(error, TimeoutError) else said
        raise LabError(
            f"{address.name}: cannot reach {host}:{port} ({reason}); is the server up and the port right?"
        ) from None


def host_and_port(uri: str) -> str:
    """Return the host and port of a URI, without user, password and path."""
    return urlsplit(uri).netloc.rpartition("@")[2]


def redact(text: str, uris: Iterable[str]) -> str:
    """Replace by `***` every password of the given URIs in a text, raw and percent-decoded, and every key given."""
    # Longest first: a password may be the beginning of another.
    for secret in sorted({secret for uri in uris for secret in _secrets(uri)}, key=len, reverse=True):
        # Very short passwords are replaced only where they occur as passwords; otherwise every "a" of a message would
        # go.
        text = text.replace(secret, "***") if len(secret) > 3 else text.replace(f":{secret}@", ":***@")
    return text


def _secrets(uri: str) -> set[str]:
    """Return the passwords in a URI, before the host or in the query, each as written and percent-decoded.

    A string that is not a URI is itself a secret: a key of an S3 server.
    """
    if "://" not in uri:
        return {uri} - {""}
    parts = urlsplit(uri)
    queried = (item.partition("=") for item in parts.query.split("&"))
    written = {parts.password or "", *(value for name, _, value in queried if name == "password")} - {""}
    return written | {unquote(secret) for secret in written}
