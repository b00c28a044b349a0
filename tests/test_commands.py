"""A command in the process of the tests is the command that a person calls."""

import os

import pytest

from tests.commands import Command


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [("list", "clickhouse.*.write_*"), ("run", "matrx"), ("run", "--rows", "many"), ("merge", "--help")],
)
def test_a_command_says_the_same_in_the_process_of_the_tests_and_in_its_own(
    lab: Command, lab_process: Command, environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    """What most tests of commands rest on."""
    here, there = (run(*arguments, env=environment) for run in (lab, lab_process))
    called = there.stderr.replace("python -m harness.cli", "lab"), there.stdout.replace("python -m harness.cli", "lab")
    assert (here.returncode, here.stderr, here.stdout) == (there.returncode, *called)


def test_a_command_in_the_process_of_the_tests_changes_no_variable_of_them(
    lab: Command, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGDATABASE", "another")
    before = dict(os.environ)
    lab("list", "*.write_*", env=environment | {"LAB_PICTURES": "1"})
    assert dict(os.environ) == before
