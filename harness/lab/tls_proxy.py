"""The process in front of servers, with TLS or without: `python -m harness.lab.tls_proxy FOLDER`.

It accepts connections, terminates TLS on those that use it, and forwards bytes between client and server.
`tls_endpoints.py` starts it. The folder has its task (`Front`, as JSON) and its certificate, which it reads for every
connection. It writes a line to standard output when it is ready. For each connection it writes one line of JSON
(`Seen`) before it forwards any byte. A signal ends it.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.model import LabError

# A certificate of the lab for servers on this machine, made by the program openssl: openssl-req(1).
#
# It is self-signed and valid only for the addresses that it names. Certificate and key are files in a folder that ends
# with the lab.

CERTIFICATE, KEY = "certificate.pem", "key.pem"
_DAYS = 30  # longer than any run
_PATIENCE_SECONDS = 10.0
# A separate configuration, because the system's may be missing or different.
_CONFIGURATION = """
[req]
prompt = no
distinguished_name = name
x509_extensions = extensions
[name]
CN = dataframe IO lab
[extensions]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyCertSign
subjectKeyIdentifier = hash
subjectAltName = {hosts}
"""


class NoCertificate(LabError):
    """There is no certificate: the message has the reason and the fix."""


def make(folder: Path, hosts: Iterable[str]) -> None:
    """Write a certificate for some IP addresses into a folder, replacing an earlier one; the key (P-256) stays.

    Raises NoCertificate.
    """
    key, made, configuration = folder / KEY, folder / f"new-{CERTIFICATE}", folder / "openssl.cnf"
    configuration.write_text(_CONFIGURATION.format(hosts=", ".join(f"IP:{host}" for host in hosts)))
    if not key.exists():
        _openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(key))
        key.chmod(0o600)
    request = ["req", "-x509", "-new", "-sha256", "-days", str(_DAYS), "-config", str(configuration)]
    _openssl(folder, *request, "-key", str(key), "-out", str(made))
    made.replace(folder / CERTIFICATE)  # atomically, because another process may be reading it


def _openssl(folder: Path, *arguments: str) -> None:
    what_to_do = "install openssl (https://openssl-library.org), which makes the lab's TLS certificate"
    program = shutil.which("openssl")
    if program is None:
        raise NoCertificate(f"no program openssl; {what_to_do}")
    environment = {"PATH": os.defpath, "HOME": str(folder), "RANDFILE": str(folder / "random")}
    try:
        done = subprocess.run(
            [program, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCertificate(f"{program} made no certificate: {error}; {what_to_do}") from None
    if done.returncode:
        said = (done.stderr.strip() or f"status {done.returncode}").splitlines()[-1]
        raise NoCertificate(f"{program} {arguments[0]} failed: {said}; {what_to_do}")


FRONTS = "fronts.json"
READY = "ready\n"
_GREETING_SECONDS = 10.0  # seconds for a client to begin TLS
_PIECE_BYTES = 1 << 18
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


@dataclass(frozen=True)
class Front:
    """A port in front of a server (`upstream`, host:port), whose clients must use TLS or must not.

    `request` and `answer`, in hexadecimal, are the messages of client and server before TLS begins; see
    `harness.address.Tls`.
    """

    port: int
    upstream: str
    tls: bool
    request: str
    answer: str


@dataclass(frozen=True)
class Seen:
    """A connection that a client opened at a port: version and cipher of its TLS, empty without TLS.

    `key_bits` is the length of that cipher's key. `refused` is the reason why the connection was closed instead.
    """

    port: int
    version: str = ""
    cipher: str = ""
    key_bits: int = 0
    refused: str = ""


def main(folder: Path) -> None:
    """Serve until a signal ends the process. Raises OSError if a port is taken."""
    fronts = [Front(**one) for one in json.loads((folder / FRONTS).read_text())]
    listening = [socket.create_server(("127.0.0.1", front.port)) for front in fronts]
    threads = [
        threading.Thread(target=_accept, args=(one, front, folder), daemon=True)
        for one, front in zip(listening, fronts, strict=True)
    ]
    for thread in threads:
        thread.start()
    _say(READY)
    for thread in threads:
        thread.join()


def _accept(listening: socket.socket, front: Front, folder: Path) -> None:
    while True:
        client, _ = listening.accept()
        threading.Thread(target=_serve, args=(client, front, folder), daemon=True).start()


def _serve(client: socket.socket, front: Front, folder: Path) -> None:
    """Serve one connection to its end; a client or server that leaves early ends it."""
    with client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            found = _begun(client, front, folder) if front.tls else client
        except (OSError, ValueError) as error:
            _tell(Seen(front.port, refused=str(error)))
            return
        _tell(_seen(found, front))
        host, _, port = front.upstream.rpartition(":")
        with suppress(OSError), found, socket.create_connection((host, int(port))) as server:
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _carry(found, server)
            if isinstance(found, ssl.SSLSocket):
                found.unwrap()  # announces the end to the client, without waiting for an answer


def _begun(client: socket.socket, front: Front, folder: Path) -> ssl.SSLSocket:
    """Return the connection with TLS. Raises ValueError if the client does not request it, and OSError."""
    client.settimeout(_GREETING_SECONDS)
    wanted = bytes.fromhex(front.request)
    asked = b""
    while len(asked) < len(wanted) and (more := client.recv(len(wanted) - len(asked))):
        asked += more
    if asked != wanted:
        raise ValueError(f"the client did not ask for TLS ({wanted.hex()}): it sent {asked.hex() or 'nothing'}")
    client.sendall(bytes.fromhex(front.answer))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    return context.wrap_socket(client, server_side=True)


def _seen(client: socket.socket, front: Front) -> Seen:
    if not isinstance(client, ssl.SSLSocket) or not (cipher := client.cipher()):
        return Seen(front.port)
    name, _, key_bits = cipher
    return Seen(front.port, client.version() or "", name, key_bits)


def _tell(seen: Seen) -> None:
    _say(json.dumps(asdict(seen)) + "\n")


def _say(line: str) -> None:
    os.write(sys.stdout.fileno(), line.encode())  # in one piece, because other threads may write at the same time


class _Way:
    """One direction of a connection: bytes received from its source and not yet sent to its target."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.source, self.target = source, target
        self.waiting, self.ended = memoryview(b""), False
        self._room = memoryview(bytearray(_PIECE_BYTES))

    def go_on(self) -> None:
        """Receive and send as much as possible without waiting."""
        with suppress(*_NOT_NOW):
            if not self.waiting and not self.ended:
                self._receive()
            while self.waiting:
                self.waiting = self.waiting[self.target.send(self.waiting) :]

    def _receive(self) -> None:
        size = more = self.source.recv_into(self._room)
        self.ended = not size
        with suppress(*_NOT_NOW):  # TLS returns one record of 16 kB at a time; sending each separately takes more time
            while more and size < len(self._room) and isinstance(self.source, ssl.SSLSocket):
                more = self.source.recv_into(self._room[size:])
                size += more
        self.waiting = self._room[:size]


def _carry(client: socket.socket, server: socket.socket) -> None:
    """Forward bytes in both directions until one side has ended and the other has received everything.

    This uses one thread, because two threads must not read and write a TLS connection at once (OpenSSL's threads(7)).
    """
    ways = _Way(client, server), _Way(server, client)
    for one in (client, server):
        one.setblocking(False)
    while not any(way.ended and not way.waiting for way in ways):
        empty = [way for way in ways if not way.waiting and not way.ended]
        full = [way for way in ways if way.waiting]
        # Decrypted bytes may be pending, which a socket does not show.
        if not any(isinstance(way.source, ssl.SSLSocket) and way.source.pending() for way in empty):
            select.select([way.source for way in empty], [way.target for way in full], [])
        for way in ways:
            way.go_on()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
