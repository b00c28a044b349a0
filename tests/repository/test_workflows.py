"""Workflows of GitHub and of examples: permissions, pins, published files."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.repository.checkout import ROOT

FOLDER = ROOT / ".github" / "workflows"
PAGE = (ROOT / "docs/how-to/ci.md").read_text()
(SHOWN,) = [block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if block.startswith("name:")]
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in FOLDER.glob("*.yml")}
SECRET = re.compile("PASSWORD|SECRET|TOKEN")  # in the name of a variable
EXAMPLES = [*ROOT.glob("docs/**/*.*"), *ROOT.glob("*.md"), ROOT / "action.yml"]
WITH_SERVICES = {"services.yml": WORKFLOWS["services.yml"], "docs/how-to/ci.md": yaml.safe_load(SHOWN)}


def services(workflow: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for job in workflow["jobs"].values():
        yield from job.get("services", {}).items()


@pytest.mark.parametrize("workflow", WITH_SERVICES)
def test_services_listen_on_loopback_under_a_secret(workflow: str) -> None:
    found = dict(services(WITH_SERVICES[workflow]))
    assert found.keys() >= {"postgres", "clickhouse"}
    for service in found.values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        passwords = [value for name, value in service["env"].items() if SECRET.search(name)]
        assert passwords == ["${{ secrets.LAB_PASSWORD }}"]
    assert found["postgres"]["options"] == "--shm-size 1g"


def passwords_in(text: str) -> list[str]:
    """Return the passwords of addresses, and the values of variables that are named like a secret."""
    of_addresses = re.findall(r"://[^\s/:@]+:((?:\$\{\{.*?\}\}|[^\s/@])+)@", text)
    of_variables = re.findall(r"\b([A-Z_]{3,})[\"']?(?:: |=)[\"']?(\$\{\{.*?\}\}|[^\s,}\"'`]+\}?)", text)
    return of_addresses + [value for name, value in of_variables if SECRET.search(name)]


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.name)
def test_no_example_shows_a_password_that_could_be_guessed(page: Path) -> None:
    """Anyone with the password can use a server on an open port: an example takes it from a secret, or has a mark."""
    for found in passwords_in(page.read_text()):
        variable = re.fullmatch(r"\\?\$(\{\{ secrets\.(\w+) \}\}|\{(\w+)\}|(\w+))", found)
        named = next((name for name in variable.groups()[1:] if name), "") if variable else ""
        assert found in ("password", "…") or SECRET.search(named), found


def test_the_workflow_of_the_page_is_a_valid_one() -> None:
    command = (Path(sys.executable).with_name("actionlint"), "-shellcheck=", "-pyflakes=", "-")
    done = subprocess.run(command, input=SHOWN, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_action_is_pinned_to_a_commit(name: str) -> None:
    steps = [step for job in WORKFLOWS[name]["jobs"].values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) for action in used)


def test_images_are_used_before_they_are_pushed_and_say_where_they_come_from() -> None:
    steps = [step.get("run", "") for step in WORKFLOWS["images.yml"]["jobs"]["build"]["steps"]]
    (used,) = [place for place, run in enumerate(steps) if ".ci/smoke-images" in run]
    pushing = [place for place, run in enumerate(steps) if "--push" in run or "docker push" in run]
    assert pushing
    assert min(pushing) > used
    for place in pushing:
        assert "--provenance=mode=max --sbom=true" in steps[place]
    assert WORKFLOWS["images.yml"]["jobs"]["publish"]["needs"] == "build"


def test_the_smoke_of_images_uses_all_that_are_published() -> None:
    published = set(WORKFLOWS["images.yml"]["env"]["SERVICES"].split())
    script = (ROOT / ".ci/smoke-images").read_text()
    assert published == {*re.findall(r"^start (\w+)", script, re.MULTILINE), "harness"}
    assert published == {path.parent.name for path in ROOT.glob("images/*/Dockerfile")} - {"debian"}


def test_dependabot_sees_the_base_images_that_the_images_name() -> None:
    named = {
        image
        for path in ROOT.glob("images/*/Dockerfile")
        if path.parent.name != "debian"
        for image in re.findall(r"^ARG [A-Z_]*IMAGE=(\S+)", path.read_text(), re.MULTILINE)
    }
    seen = re.findall(r"^FROM (\S+)", (ROOT / ".github/bases/Dockerfile").read_text(), re.MULTILINE)
    assert sorted(seen) == sorted(named), (
        "change the ARG in images/, the default in compose/settings.toml, and this file"
    )


def test_the_audit_looks_at_every_lock_and_tells_what_it_finds() -> None:
    (job,) = WORKFLOWS["audit.yml"]["jobs"].values()
    assert "make audit" in job["steps"][-2]["run"]
    assert "gh issue" in job["steps"][-1]["run"]
    assert job["permissions"]["issues"] == "write"
    assert WORKFLOWS["audit.yml"]["defaults"]["run"]["shell"] == "bash"  # without pipefail tee would hide a failure
    recipe = (ROOT / "Makefile").read_text().partition("\naudit:")[2].partition("\n\n")[0]
    assert "for lock in requirements*.lock" in recipe
    assert "--require-hashes" in recipe
