"""TLS in front of the servers of the embedded lab: the addresses with it and without, and how the lab detects it."""

import hashlib
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from harness.lab import tls_endpoints, tls_proxy
from harness.lab.tls_endpoints import Fronts, tls_at
from harness.model import LabError
from harness.settings import Settings
from tests.waiting import until

MEGABYTES = 8


@pytest.fixture(scope="module")
def made(embedded_lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronts]:
    folder = tmp_path_factory.mktemp("tls")
    folder.chmod(0o755)
    with tls_endpoints.opened(Settings(state_dir=folder), embedded_lab.endpoints) as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield found


def at_front(made: Fronts, lab, endpoint: str, on: bool) -> str:
    """The address that a client of an endpoint gets."""
    asks = tls_at(endpoint)
    assert asks
    return asks.in_uri(made.before(lab.endpoints[endpoint], on), on, made.certificate_file)


def refused(made: Fronts) -> list[str]:
    return [one.refused for one in made._seen() if one.refused]


def trusting(made: Fronts) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=made.certificate_file)


@pytest.mark.parametrize("on", [True, False], ids=["with TLS", "without"])
def test_a_client_of_postgres_has_tls_where_its_address_says_so_and_nowhere_else(made, embedded_lab, on):
    uri = at_front(made, embedded_lab, "postgres", on)
    with psycopg.connect(uri) as one, psycopg.connect(uri) as other:
        assert [each.pgconn.ssl_in_use for each in (one, other)] == [on, on]
        assert one.execute("SELECT 1").fetchone() == (1,)
    told = {"tls_connections": 2, "tls_version": 1.3, "tls_key_bits": 256} if on else {"tls_connections": 0}
    assert made.used(embedded_lab.endpoints["postgres"], on) == told


def test_the_addresses_of_the_lab_itself_have_no_tls_not_even_for_clients_that_prefer_it(embedded_lab):
    with psycopg.connect(embedded_lab.endpoints["postgres"], sslmode="prefer") as connection:
        assert not connection.pgconn.ssl_in_use


@pytest.mark.parametrize("on", [True, False], ids=["with TLS", "without"])
def test_many_bytes_come_and_go_as_they_are(made, embedded_lab, on):
    sent = b"".join(hashlib.sha256(bytes([n])).hexdigest().encode() * 4_096 + b"\n" for n in range(4 * MEGABYTES))
    with psycopg.connect(at_front(made, embedded_lab, "postgres", on)) as connection:
        connection.execute("CREATE TEMPORARY TABLE bytes_of_a_front (line text)")
        with connection.cursor().copy("COPY bytes_of_a_front FROM STDIN") as copy:
            copy.write(sent)
        with connection.cursor().copy("COPY bytes_of_a_front TO STDOUT") as copy:
            assert b"".join(map(bytes, copy)) == sent


def test_a_client_of_http_has_tls_with_a_certificate_that_it_can_check(made, embedded_lab):
    url = urlsplit(at_front(made, embedded_lab, "clickhouse_http", on=True))
    assert url.scheme == "https"
    client = HTTPSConnection(url.hostname, url.port, context=trusting(made))
    client.request("GET", "/ping")
    assert client.getresponse().read() == b"Ok.\n"
    client.close()
    assert made.used(embedded_lab.endpoints["clickhouse_http"], on=True)["tls_connections"] == 1
    with pytest.raises(ssl.SSLCertVerificationError):  # a client without a trusted certificate
        HTTPSConnection(url.hostname, url.port, context=ssl.create_default_context()).connect()


def test_the_native_protocol_has_tls_too(made, embedded_lab):
    from clickhouse_driver import Client

    with Client.from_url(at_front(made, embedded_lab, "clickhouse_native", on=True)) as client:
        assert client.execute("SELECT 1") == [(1,)]
    assert made.used(embedded_lab.endpoints["clickhouse_native"], on=True)["tls_connections"] == 1


def test_a_client_without_tls_is_refused_where_it_is_to_have_it_and_that_is_said(made, embedded_lab):
    server = embedded_lab.endpoints["postgres"]
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(made.before(server, on=True), sslmode="disable")
    until(lambda: refused(made))
    with pytest.raises(LabError, match=r"the front refused a connection with TLS: the client did not ask for TLS"):
        made.used(server, on=True)


def test_plain_http_at_a_port_with_tls_is_refused(made, embedded_lab):
    url = urlsplit(made.before(embedded_lab.endpoints["clickhouse_http"], on=True))
    client = HTTPConnection(url.hostname, url.port, timeout=60)
    with suppress(OSError):
        client.request("GET", "/ping")
        client.getresponse()
    until(lambda: any("http request" in reason.lower() for reason in refused(made)))


def test_a_client_that_went_around_the_front_is_said(made, embedded_lab):
    server = embedded_lab.endpoints["postgres"]
    made.before(server, on=True)
    psycopg.connect(server).close()
    with pytest.raises(LabError, match="no connection with TLS reached the server's front: the client went around it"):
        made.used(server, on=True)
    psycopg.connect(at_front(made, embedded_lab, "postgres", on=False)).close()
    with pytest.raises(LabError, match="no connection with TLS reached the server's front: the client went around it"):
        made.used(server, on=True)


def test_the_server_sees_a_client_leave(made, embedded_lab):
    with psycopg.connect(embedded_lab.endpoints["postgres"], autocommit=True) as witness:
        connection = psycopg.connect(at_front(made, embedded_lab, "postgres", on=True))
        pid = connection.info.backend_pid
        lives = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s"
        assert witness.execute(lives, [pid]).fetchone() == (1,)
        connection.close()
        until(lambda: witness.execute(lives, [pid]).fetchone() == (0,))


def test_a_client_sees_the_end_of_what_a_server_says(made, embedded_lab):
    """TLS has its own end mark: without it a client must treat the answer as cut off."""
    url = urlsplit(at_front(made, embedded_lab, "clickhouse_http", on=True))
    with (
        socket.create_connection((url.hostname, url.port)) as plain,
        trusting(made).wrap_socket(plain, server_hostname=url.hostname, suppress_ragged_eofs=False) as client,
    ):
        client.sendall(b"GET /ping HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        answer = b""
        while piece := client.recv(1 << 16):
            answer += piece
    assert answer.endswith(b"Ok.\n")


def test_the_certificate_is_for_every_host_that_clients_go_to(made, embedded_lab):
    url = urlsplit(at_front(made, embedded_lab, "clickhouse_http", on=True))

    def connect(host: str) -> None:
        with (
            socket.create_connection((url.hostname, url.port)) as plain,
            trusting(made).wrap_socket(plain, server_hostname=host) as client,
        ):
            assert client.version() == "TLSv1.3"

    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for '198"):
        connect("198.18.7.1")
    made.certify("https://198.18.7.1:1")
    connect("198.18.7.1")
    connect("127.0.0.1")


def test_a_front_that_died_is_brought_back(made, embedded_lab):
    made.lab.end(tls_endpoints.NAME)
    until(made.lab.dead)
    assert made.revive() == [tls_endpoints.NAME]
    assert made.revive() == []
    psycopg.connect(at_front(made, embedded_lab, "postgres", on=True)).close()
    assert made.used(embedded_lab.endpoints["postgres"], on=True)["tls_connections"] == 1


def test_without_openssl_there_is_a_reason_and_what_to_do(embedded_lab, tmp_path: Path, monkeypatch):
    tmp_path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with tls_endpoints.opened(Settings(state_dir=tmp_path), embedded_lab.endpoints) as found:
        assert isinstance(found, str)
        assert "no program openssl; install openssl" in found


def test_an_openssl_that_fails_says_why(tmp_path: Path):
    with pytest.raises(tls_proxy.NoCertificate, match=r"\S+ req failed: \S"):
        tls_proxy.make(tmp_path, ["no address"])
    assert not (tmp_path / tls_proxy.CERTIFICATE).exists()
