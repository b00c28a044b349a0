"""Answers of the gateway that are equal to those of ClickHouse's own handlers, odd cases above all."""

import base64
import json
import struct

import lz4.frame
import pytest

from harness.systems.clickhouse.gateway.codecs import METHOD_NONE, compress_frames

from .conftest import PASSWORD, USER

CREDENTIALS = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/", 200),
        ("GET", "/ping", 200),
        ("GET", "/replicas_status?", 200),
        ("GET", "/query?query=SELECT+1", 200),
        ("GET", "/ping?", 404),
        ("POST", "/ping", 404),
        ("GET", "/nothing?query=SELECT+1", 404),
        ("GET", "/?", 400),
        ("POST", "/", 400),
        ("PUT", "/?query=SELECT+1", 501),
    ],
)
def test_only_the_targets_of_a_server_are_served(gateway, method, target, status):
    assert gateway.ask(method=method, path=target).status == status


@pytest.mark.parametrize(
    ("value", "status", "code"),
    [
        ("Basic !!!", 500, "1000"),
        ("Basic", 200, None),  # the default user, without a password
        ("Basic " + CREDENTIALS.rstrip("="), 200, None),
        ("Bearer x", 403, "516"),
    ],
)
def test_an_authorization_header_is_read_as_a_server_reads_it(gateway, value, status, code):
    answer = gateway.ask("SELECT 1", user=None, headers={"Authorization": value})
    assert (answer.status, answer.code) == (status, code)


@pytest.mark.long
def test_a_password_in_a_header_is_utf_8(launch, tmp_path):
    users = tmp_path / "users.json"
    users.write_text(json.dumps({"us€r": "pässwörd"}), encoding="utf-8")
    gateway = launch(users=users)
    assert gateway.ask("SELECT 1", user="us€r".encode(), password="pässwörd".encode()).body == b"1\n"
    assert gateway.ask("SELECT 1", user="us€r".encode(), password="pässwörd".encode("latin-1")).code == "516"


def test_a_result_is_counted_when_it_has_ended_before_the_head(gateway):
    answer = gateway.ask("SELECT 1", wait_end_of_query=1)
    assert int(json.loads(answer.headers["X-ClickHouse-Summary"])["result_bytes"]) > 0


def test_a_statement_may_be_any_bytes(gateway):
    assert gateway.ask(body=b"SELECT '\xff\xfe', hex('\xff')").body == b"\xff\xfe\tFF\n"
    assert gateway.ask(body=b"SELECT 1 AS `\xff` FORMAT TSVWithNames").body == b"\xff\n1\n"
    assert gateway.ask(body=b"INSERT INTO `\xff` VALUES (1)").code == "60"
    assert gateway.native().execute("SELECT hex(unhex('FF'))") == [("FF",)]


def test_what_get_may_not_change_is_the_engines_to_say(gateway, table):
    def get(query, **params):
        return gateway.ask(query, method="GET", **params).code

    assert get("INSERT INTO missing VALUES (1)") == "60"
    assert get("DROP TABLE missing") == "60"
    assert get(f"INSERT INTO {table} (number_1) VALUES (1)") == "164"
    assert get(f"DROP TABLE {table}") == "164"
    assert get("CREATE TABLE new (a Int8) ENGINE = Memory") == "164"
    assert gateway.query(f"SELECT count() FROM {table}") == b"0\n"


@pytest.mark.parametrize(
    ("encoding", "body", "status", "code"),
    [
        ("nope", b"SELECT 1", 501, "48"),
        ("identity", b"SELECT 1", 501, "48"),
        ("none", b"SELECT 1", 200, None),
        ("gzip", b"SELECT 1", 500, "354"),
        ("deflate", b"SELECT 1", 500, "354"),
        ("lz4", b"SELECT 1", 500, "618"),
        ("zstd", b"SELECT 1", 500, "561"),
    ],
)
def test_a_body_whose_encoding_is_unknown_or_wrong_is_refused_with_the_code_of_a_server(
    gateway, encoding, body, status, code
):
    answer = gateway.ask(body=body, headers={"Content-Encoding": encoding})
    assert (answer.status, answer.code) == (status, code)


def changed(frame, place, data):
    return frame[:place] + data + frame[place + len(data) :]


FRAME = compress_frames(b"SELECT 1", METHOD_NONE)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (changed(FRAME, 0, bytes(16)), "271"),  # the checksum
        (FRAME[:-1], "33"),
        (changed(FRAME, 17, struct.pack("<I", 0x7FFFFFFF)), "39"),
    ],
)
def test_a_damaged_frame_is_refused_with_the_code_of_a_server(gateway, body, code):
    assert gateway.ask(body=body, decompress=1).code == code


@pytest.mark.parametrize("revision", [0, 54405])
@pytest.mark.parametrize("encoding", ["lz4", "zstd", "gzip"])
def test_an_answer_of_no_bytes_has_no_encoding(gateway, encoding, revision):
    nothing = "SELECT 1 WHERE 0 FORMAT Native"
    answer = gateway.ask(nothing, headers={"Accept-Encoding": encoding}, client_protocol_version=revision)
    assert (answer.body, answer.headers["Content-Encoding"]) == (b"", None)
    answer = gateway.ask("SELECT 1 FORMAT Native", headers={"Accept-Encoding": "lz4"})
    assert lz4.frame.decompress(answer.body).endswith(b"\x01")


def test_a_file_into_which_to_write_is_the_clients_over_the_native_protocol(gateway, tmp_path):
    target = f"INTO OUTFILE '{tmp_path}/file' TRUNCATE COMPRESSION 'none'"
    assert gateway.native().execute(f"SELECT 1 {target} FORMAT CSV SETTINGS max_threads = 1") == [(1,)]
    assert gateway.native().execute(f"SELECT 'INTO OUTFILE' {target}") == [("INTO OUTFILE",)]
    assert gateway.ask(f"SELECT 1 {target}").code == "358"
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize(("kind", "found"), [("USERS", b"default\n"), ("POLICIES", b""), ("ROLES", b"")])
def test_users_policies_and_roles_can_be_listed(gateway, kind, found):
    assert gateway.query(f"SHOW {kind}") == found


def test_a_request_of_http_at_the_native_port_is_sent_to_the_http_port(gateway):
    with gateway.raw(gateway.native_port) as connection:
        connection.sendall(b"GET /?query=SELECT+1 HTTP/1.1\r\n\r\n")
        told = f"Port {gateway.native_port} is for clickhouse-client program\r\n"
        assert connection.recv(1 << 16).decode() == f"HTTP/1.0 400 Bad Request\r\n\r\n{told}"
