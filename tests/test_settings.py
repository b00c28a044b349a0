"""Settings come from LAB_ variables, have defaults, and a wrong one is one line that names it."""

import os
import socket
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

import pytest

from harness import address, registry, settings
from harness.machine import variables
from harness.model import OR, Case, Fate, Finding, LabError, Run
from tests.commands import one_line


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    """Nothing set, whatever the shell of the person has."""
    for name in settings.Settings.model_fields:
        monkeypatch.delenv(f"LAB_{name.upper()}", raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "")  # loading sets them; this puts them back afterwards


def test_without_variables_or_with_empty_ones_every_setting_has_its_default(monkeypatch):
    monkeypatch.setenv("PGHOST", "elsewhere")
    before, default = dict(os.environ), settings.load()
    assert dict(os.environ) == before  # reading the settings changes nothing
    assert default.seed == 20260407
    assert default.datasets_dir == settings.ROOT / "datasets"
    assert (default.postgres_uri, default.time_limit) == (None, None)
    for name in settings.Settings.model_fields:
        monkeypatch.setenv(f"LAB_{name.upper()}", "")
    assert settings.load() == default


def test_variables_are_read_with_their_types_and_a_path_may_begin_at_the_persons_home(monkeypatch):
    told = {"HOME": "/somebody", "LAB_STATE_DIR": "~/state", "LAB_RESULTS_DIR": "elsewhere"}
    for name, value in {**told, "LAB_SEED": "7", "LAB_TIME_LIMIT": "0.5"}.items():
        monkeypatch.setenv(name, value)
    chosen = settings.load()
    assert (chosen.seed, chosen.time_limit, chosen.results_dir) == (7, 0.5, Path("elsewhere").absolute())
    assert chosen.state_dir == Path("/somebody/state")
    assert chosen.cache_dir == Path("/somebody/.cache/dataframe-io-lab")
    with pytest.raises(ValueError, match="frozen"):
        chosen.seed = 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LAB_SEED", "abc"),
        ("LAB_SEED", "-1"),
        ("LAB_SEED", "1.5"),
        ("LAB_TIME_LIMIT", "0"),
        ("LAB_TIME_LIMIT", "-3"),
        ("LAB_TIME_LIMIT", "soon"),
        ("LAB_TIME_LIMIT", "nan"),
        ("LAB_TIME_LIMIT", "inf"),
        ("LAB_NAMESPACE", "Lab"),
        ("LAB_NAMESPACE", "7th"),
        ("LAB_NAMESPACE", "lab; DROP TABLE t"),
        ("LAB_NAMESPACE", "lab\n"),
        ("LAB_NAMESPACE", "l" * 49),
    ],
)
def test_a_wrong_value_is_one_line_that_names_its_variable(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with one_line(f"^{name}: "):
        settings.load()


def test_the_namespace_is_the_one_that_is_set_here_and_in_workers(monkeypatch):
    assert settings.load().namespace == variables.namespace() == "dataframe_io_lab"
    monkeypatch.setenv("LAB_NAMESPACE", "another_lab")
    assert settings.load().namespace == variables.namespace() == "another_lab"
    assert variables.clean_environment()["LAB_NAMESPACE"] == "another_lab"


def test_a_command_switches_every_proxy_off_and_forgets_what_clients_read(monkeypatch):
    monkeypatch.setattr(os, "environ", {"http_proxy": "http://x:1", "PGHOST": "elsewhere", "HOME": "/home"})
    variables.forget_clients(["PG"])
    assert getproxies_environment()["no"] == "*"
    assert "PGHOST" not in os.environ
    assert os.environ["HOME"] == "/home"


def test_every_setting_has_one_line_of_explanation():
    for field in settings.Settings.model_fields.values():
        assert field.description
        assert "\n" not in field.description


WAY = registry.one("postgres.psycopg.write_polars_copy_text")
COMES_THROUGH = {Fate.EXACT, Fate.CONVERTED}


@pytest.mark.parametrize(
    ("wanted", "right"),
    [
        ("", COMES_THROUGH),
        *((str(fate), {fate}) for fate in (Fate.CHANGED, Fate.REFUSED, Fate.HANGS, Fate.CRASHES)),
        (OR.join((Fate.REFUSED, Fate.EXACT)), {Fate.REFUSED, Fate.EXACT}),
    ],
)
def test_a_fate_is_as_wanted_where_it_is_declared_and_otherwise_where_values_come_through(wanted, right):
    """A pair that was not tried refutes nothing; one that the reference client cannot verify is never right."""
    found = {fate for fate in Fate if Finding(WAY, "one_row", fate, wanted).as_wanted}
    assert found == right | {Fate.UNAVAILABLE}


def test_a_case_is_labelled_with_its_parameters_and_a_run_known_by_case_and_pass():
    case = Case(WAY, "growing", "integers", {"files": 8, "page_cache": "warm"})
    assert case.label == "files=8; page_cache=warm"
    assert Run(case, 2, 17).key == (WAY.id, "growing", "files=8; page_cache=warm", 2)
    assert Run(case, 2, 18).key == Run(case, 2, 17).key


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
