"""ClickHouse over TLS: a certificate that this machine trusts is needed, for the host of the address."""

import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from arrow_wire import Disconnected, clickhouse

from clickhouse_server import DATABASE, Server

FRAME = pa.table({"n": pa.array(range(200_000), pa.int64())})


@pytest.fixture(scope="module", params=["127.0.0.1", "127.0.0.2"])
def secured(request: Any, addresses: Any, tmp_path_factory: Any) -> Iterator[tuple[str, str, Path]]:
    """The host of a certificate that it signed itself, an address that ends TLS with it, and its file."""
    folder = tmp_path_factory.mktemp("tls")
    program, names = shutil.which("openssl"), f"subjectAltName=IP:{request.param}"
    assert program, "install openssl, which makes the certificate"
    command = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", names, "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    parts = urlsplit(addresses.clickhouse)
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        threading.Thread(target=_serve, args=(listening, context, parts.hostname, parts.port), daemon=True).start()
        credentials = parts.netloc.rpartition("@")[0]
        address = f"https://{credentials}@127.0.0.1:{listening.getsockname()[1]}/?database={DATABASE}"
        yield request.param, address, folder / "certificate.pem"


def _serve(listening: socket.socket, context: ssl.SSLContext, host: str, port: int) -> None:
    with suppress(OSError):  # in the end the socket is closed
        while True:
            client, _ = listening.accept()
            with suppress(OSError):
                inside, outside = context.wrap_socket(client, server_side=True), socket.create_connection((host, port))
                for pair in ((inside, outside), (outside, inside)):
                    threading.Thread(target=_hand_on, args=pair, daemon=True).start()


def _hand_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
    for end in (one, other):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def test_only_a_trusted_certificate_of_the_host_is_taken(
    secured: tuple[str, str, Path], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, address, certificate = secured
    server.ask("CREATE OR REPLACE TABLE tls (n Int64) ENGINE = MergeTree ORDER BY n")
    with pytest.raises(Disconnected, match="CERTIFICATE_VERIFY_FAILED"):
        clickhouse.write(address, "tls", FRAME)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    if host != "127.0.0.1":
        with pytest.raises(Disconnected, match="IP address mismatch"):
            clickhouse.write(address, "tls", FRAME)
        assert server.ask("SELECT count() FROM tls") == b"0\n"
        return
    assert clickhouse.write(address, "tls", FRAME).rows == len(FRAME)
    assert clickhouse.read(address, "SELECT sum(n) AS n FROM tls")["n"].to_pylist() == [sum(range(len(FRAME)))]
