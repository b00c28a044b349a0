"""The page of commands says what the application says, and commands that stand in prose are as it takes them."""

import re
import shlex

import pytest
import typer

from harness.cli.commands import app
from harness.docs import commands
from harness.settings import ROOT

GROUP = typer.main.get_command(app)
TYPED = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/get-started.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/how-to/*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/explanation/*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/dev/*.md")),
)


def typed():
    """The commands of the lab in prose, by file: what stands in code after `lab`, without its comment."""
    for name in TYPED:
        for line in re.findall(r"(?:^ {4,}(?:- run: )?|`)(?:\.venv/bin/)?(lab [a-z][^`\n]*)", *_lines(name)):
            yield pytest.param(line, id=f"{name}: {line}")


def _lines(name):
    return (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE


def targets():
    return set(re.findall(r"^([a-z-]+(?: [a-z-]+)*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def typed_targets(name):
    return re.findall(r"(?:^ {4,}|`|&& )make ([a-z][a-z-]*)", *_lines(name))


def make_targets():
    return {target for line in targets() for target in line.split()}


def test_every_command_and_option_stands_on_the_page():
    text = commands.page(app, "lab")
    for name, command in GROUP.commands.items():
        part = text.partition(f"\n## lab {name}\n")[2].partition("\n## ")[0]
        assert part.count(f"$ lab {name}") == 1
        options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
        assert options <= set(re.findall(r"`(--[a-z-]+)", part)) | {"--help"}
        assert f"](#lab-{name})" in text


@pytest.mark.parametrize("line", list(typed()))
def test_a_command_in_prose_is_one_that_the_application_takes(line):
    words = shlex.split(line.partition("  #")[0])
    command = GROUP.commands.get(words[1])
    assert command, f"there is no command {words[1]}"
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word.partition("=")[0] for word in words[2:] if word.startswith("-")} <= known


@pytest.mark.parametrize("name", TYPED)
def test_a_target_of_make_in_prose_is_one_of_the_makefile(name):
    assert set(typed_targets(name)) <= make_targets()
