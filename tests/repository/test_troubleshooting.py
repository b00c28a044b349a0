"""The messages of the page of troubleshooting are those that the lab prints, or that it knows from Docker."""

import re

from tests.repository.checkout import ROOT

PAGE = (ROOT / "docs/how-to/troubleshooting.md").read_text("utf-8")
HEADINGS = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
OF_DOCKER = re.findall(r"^\| `(.+?)` \|", PAGE, re.MULTILINE)


def printed() -> str:
    """Return all source that prints, with strings that stand in several pieces put together."""
    files = (path for folder in ("harness", "environments", "compose") for path in (ROOT / folder).rglob("*"))
    sources = (path.read_text("utf-8") for path in files if path.is_file() and path.suffix in ("", ".py", ".tsv"))
    return re.sub(r"[\"']\s*\n\s*f?[\"']", "", "\n".join(sources)).replace("\\", "")


def test_each_message_is_one_that_is_printed():
    parts = [part.strip() for message in [*HEADINGS, *OF_DOCKER] for part in message.split("…")]
    source = printed()
    assert [part for part in parts if part not in source] == []
