"""Addresses: a wrong URI causes one line without its password, and no output has a password."""

import socket
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from harness import address
from harness.model import LabError
from tests.commands import one_line

POSTGRES = address.Address("here", "postgres_uri", "", ("postgresql", "postgres"), 5432)


@pytest.fixture
def silent_port():
    """A loopback port on which no process listens; it stays bound, so that no process can take it."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "db.example",
        "postgresql://",
        "postgresql://:5432/db",
        "mysql://u:secret@db.example",
        "postgresql://u:secret@db.example:port",
        "postgresql://u:secret@db.example:99999",
        "postgresql://u:secret@db.example:-1",
        "postgresql://u:secret@[::1",
        "postgresql://u:sec/ret@db.example",
    ],
)
def test_a_wrong_uri_is_one_line_that_names_the_setting_and_not_the_password(uri):
    with one_line(r"^LAB_POSTGRES_URI: not a URI like postgresql://") as caught:
        address.split(uri, POSTGRES)
    assert "sec" not in str(caught.value)


@pytest.mark.parametrize(
    "uri", ["postgresql://db.example", "postgres://u:p@db.example:1/x?sslmode=require", "postgresql://u@[::1]:5432"]
)
def test_a_good_uri_is_taken_apart(uri):
    assert address.split(uri, POSTGRES) == urlsplit(uri)


def test_a_closed_port_is_one_line_with_host_and_port(silent_port):
    parts = urlsplit(f"postgresql://u:secret@127.0.0.1:{silent_port}")
    with pytest.raises(LabError, match=f"^here: cannot reach 127.0.0.1:{silent_port} .Connection refused") as caught:
        address.reach(parts, POSTGRES)
    assert "secret" not in str(caught.value)


def test_a_listening_port_is_reached_also_by_the_default_of_the_scheme():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.settimeout(60)
        address.reach(urlsplit("postgresql://127.0.0.1"), replace(POSTGRES, port=server.getsockname()[1]))
        assert server.accept()[1][0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("tls", "on", "said"),
    [
        (address.Tls("https"), True, "https://u:p%40q@h:1/?x=a%20b"),
        (address.Tls("https"), False, "http://u:p%40q@h:1/?x=a%20b"),
        (address.Tls(query=("mode=no", "mode=yes")), True, "http://u:p%40q@h:1/?x=a%20b&mode=yes"),
        (address.Tls("https", ("", "ca={certificate}")), True, "https://u:p%40q@h:1/?x=a%20b&ca=%2Fa%20file"),
        (address.Tls(query=("mode=no", "mode=yes")), False, "http://u:p%40q@h:1/?x=a%20b&mode=no"),
    ],
)
def test_an_address_says_whether_clients_are_to_use_tls(tls, on, said):
    assert tls.in_uri("http://u:p%40q@h:1/?x=a%20b", on, "/a file") == said
    assert tls.in_uri(said, on, "/a file") == said


@pytest.mark.parametrize("host", ["nowhere.invalid", "two..dots", "x" * 64])
def test_a_host_that_is_none_is_one_line_that_names_it(host):
    with pytest.raises(LabError, match=f"cannot reach {host}:5432"):
        address.reach(urlsplit(f"postgresql://{host}"), POSTGRES)


KEYS = ["lab0123456789abcdef", "wJalrXUtnFEMI/K7MDENG+bPx", ""]


@pytest.mark.parametrize(
    ("uris", "text", "told"),
    [
        (["http://u:hunter22@h"], "wrong password hunter22 for u", "wrong password *** for u"),
        (["http://u:hun%2Fter@h"], "as sent hun/ter and as typed hun%2Fter", "as sent *** and as typed ***"),
        (["http://u:abc@h"], "cannot open http://u:abc@h", "cannot open http://u:***@h"),
        (["http://u:a@h"], "cannot open http://u:a@h", "cannot open http://u:***@h"),
        (["http://u:a@h"], "a table has a row", "a table has a row"),  # it would blot out the message
        (
            ["postgresql://h/db?user=u&password=hunter22"],
            "connection to h failed: password=hunter22",
            "connection to h failed: password=***",
        ),
        (["http://h:8123/?user=u&password=hun%2Fter"], "password hun/ter is wrong", "password *** is wrong"),
        # one that begins another does not uncover its rest
        (["http://u:hunter@h", "http://u:hunter-and-gatherer@h"], "it was hunter-and-gatherer", "it was ***"),
        (["http://u:hunter-and-gatherer@h", "http://u:hunter@h"], "it was hunter-and-gatherer", "it was ***"),
        (["http://h", "http://u@h", "http://u:@h", ""], "nothing here", "nothing here"),
        (KEYS, f"HTTP 403 for {KEYS[0]} with {KEYS[1]} at http://h:1", "HTTP 403 for *** with *** at http://h:1"),
    ],
)
def test_a_password_or_key_is_replaced_however_it_is_written(uris, text, told):
    assert address.redact(text, uris) == told
