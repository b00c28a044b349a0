"""Settings come from LAB_ variables, have defaults, and a wrong one is one line that names it."""

import os
from pathlib import Path
from urllib.request import getproxies_environment

import pytest

from harness import settings
from harness.machine import variables
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
