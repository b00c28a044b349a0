"""Both servers over TLS: the client needs a certificate that it trusts, for the host of the address."""

import shutil
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pyarrow as pa
import pytest
from arrow_wire import Disconnected, WrongValue, clickhouse, postgres

from clickhouse_server import DATABASE, Server

FRAME = pa.table({"n": pa.array(range(200_000), pa.int64())})


_SSL_REQUEST = struct.pack("!ii", 8, 80877103)  # of Postgres: its answer is "S", then TLS begins


@pytest.fixture(scope="module", params=["127.0.0.1", "127.0.0.2"])
def signed(request: Any, tmp_path_factory: Any) -> tuple[str, Path]:
    """The host of a certificate that it signed itself, and the folder of its file and key."""
    folder = tmp_path_factory.mktemp("tls")
    program, names = shutil.which("openssl"), f"subjectAltName=IP:{request.param}"
    assert program, "install openssl, which makes the certificate"
    command = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", names, "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return request.param, folder


@contextmanager
def _front(folder: Path, uri: str, asked: bool) -> Iterator[str]:
    """Yield credentials and place of an address that ends TLS, which a client may have to ask for, before a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    parts = urlsplit(uri)
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        given = (listening, context, parts.hostname, parts.port, asked)
        threading.Thread(target=_serve, args=given, daemon=True).start()
        yield f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{listening.getsockname()[1]}"


def _serve(listening: socket.socket, context: ssl.SSLContext, host: str, port: int, asked: bool) -> None:
    with suppress(OSError):  # in the end the socket is closed
        while True:
            client, _ = listening.accept()
            with suppress(OSError):
                if asked:
                    assert client.recv(8) == _SSL_REQUEST
                    client.sendall(b"S")
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


def test_clickhouse_is_written_and_read_where_its_certificate_is_trusted_and_of_the_host(
    signed: tuple[str, Path], addresses: Any, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, folder = signed
    with _front(folder, addresses.clickhouse, asked=False) as place:
        _try_clickhouse(f"https://{place}/?database={DATABASE}", host, folder / "certificate.pem", server, monkeypatch)


def _try_clickhouse(
    address: str, host: str, certificate: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
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


def test_postgres_is_written_and_read_where_its_certificate_is_trusted_and_of_the_host(
    signed: tuple[str, Path], addresses: Any
) -> None:
    host, folder = signed
    database = urlsplit(addresses.postgres).path
    with (
        psycopg.connect(addresses.postgres, autocommit=True) as direct,
        _front(folder, addresses.postgres, asked=True) as place,
    ):
        direct.execute("DROP TABLE IF EXISTS tls; CREATE TABLE tls (n bigint PRIMARY KEY)")
        address = f"postgresql://{place}{database}?sslmode=verify-full&sslrootcert="
        with pytest.raises(Disconnected):
            postgres.write(f"{address}{folder / 'key.pem'}", "tls", FRAME)
        address += str(folder / "certificate.pem")
        if host != "127.0.0.1":
            with pytest.raises(Disconnected, match="does not match host name"):
                postgres.write(address, "tls", FRAME)
            assert direct.execute("SELECT count(*) FROM tls").fetchone() == (0,)
            return
        with postgres.connect(address) as connections:
            assert connections[0].pgconn.ssl_in_use
            for frame in (FRAME.slice(0, 10), FRAME.slice(10)):  # one COPY, and slices of two-phase commit
                assert postgres.write(connections, "tls", frame).rows == len(frame)
            assert postgres.read(connections, "tls").sort_by("n").equals(FRAME)
            assert postgres.stream(connections, "SELECT sum(n)::bigint AS n FROM tls").read_all()["n"].to_pylist() == [
                sum(range(len(FRAME)))
            ]
            with pytest.raises(WrongValue, match="row 1"):
                postgres.write(connections, "tls", pa.table({"n": pa.array([0, 1 << 63], pa.uint64())}))
            assert postgres.read(connections, "SELECT count(*) AS n FROM tls")["n"].to_pylist() == [len(FRAME)]
        direct.execute("DROP TABLE tls")
