"""Declarations of the ClickHouse transports; none of these tests needs a server."""

import pytest

from harness import registry
from harness.transports.clickhouse.server import raise_if_broken_off


def test_every_insert_says_whether_it_is_asynchronous():
    for entry in registry.select("clickhouse.*.write_*"):
        assert entry.settings["async_insert"] == ("1" if "_async_insert_" in entry.id else "0"), entry.id


def test_an_answer_that_ends_with_the_mark_of_a_late_failure_is_refused():
    tag = "rwzhvnamhqcfyfbh"
    message = f"\r\n__exception__\r\n{tag}\r\nCode: 395. DB::Exception: broke late\n37 {tag}\r\n__exception__\r\n"
    with pytest.raises(RuntimeError, match="Code: 395"):
        raise_if_broken_off(b"1,2\n" * 1000 + message.encode(), tag)


@pytest.mark.parametrize("tag", [None, "rwzhvnamhqcfyfbh"])
def test_a_whole_answer_is_accepted_with_and_without_a_tag(tag):
    assert raise_if_broken_off(b"1,2\n" * 1000, tag) is None
