"""Declarations of the ClickHouse transports; none of these tests needs a server."""

import pytest

from harness import registry
from harness.model import Operation
from harness.transports.clickhouse.server import raise_if_broken_off

CLIENTS = ("asynch", "clickhouse_driver", "httpx", "sqlalchemy", "urllib")


def published():
    return [entry for entry in registry.catalogue().values() if entry.system == "clickhouse" and entry.published]


def test_every_insert_says_whether_it_is_asynchronous():
    for entry in registry.select("clickhouse.*.write_*"):
        assert entry.settings["async_insert"] == ("1" if "_async_insert_" in entry.id else "0"), entry.id


def test_text_inside_a_native_insert_is_parsed_by_the_server_without_losing_bits():
    inline = [entry for entry in published() if entry.path in ("native INSERT FORMAT CSV", "native INSERT FORMAT TSV")]
    assert inline
    for entry in inline:
        assert entry.settings["send_table_structure_on_insert_with_inline_data"] == "0"
        assert entry.settings["precise_float_parsing"] == "1"


def test_every_parquet_read_pins_codec_and_text_type():
    reads = [entry for entry in published() if entry.path == "HTTP SELECT FORMAT Parquet"]
    assert len(reads) == 4
    for entry in reads:
        assert entry.settings["output_format_parquet_compression_method"] == "zstd"
        assert entry.settings["output_format_parquet_string_as_string"] == "1"


def test_httpx_reads_do_not_depend_on_which_compressions_are_installed():
    reads = [entry for entry in published() if entry.client == "httpx" and entry.operation is Operation.READ]
    assert [entry.settings["enable_http_compression"] for entry in reads] == ["0"] * 4


@pytest.mark.parametrize("client", CLIENTS)
def test_the_transports_of_a_client_share_its_style_and_endpoint(client):
    entries = [entry for entry in published() if entry.client == client]
    assert {entry.style for entry in entries} == {"async" if client in ("asynch", "httpx") else "sync"}
    assert {entry.endpoint for entry in entries} == {
        "clickhouse_http" if client in ("httpx", "urllib") else "clickhouse_native"
    }


def test_an_answer_that_ends_with_the_mark_of_a_late_failure_is_refused():
    tag = "rwzhvnamhqcfyfbh"
    message = f"\r\n__exception__\r\n{tag}\r\nCode: 395. DB::Exception: broke late\n37 {tag}\r\n__exception__\r\n"
    with pytest.raises(RuntimeError, match="Code: 395"):
        raise_if_broken_off(b"1,2\n" * 1000 + message.encode(), tag)


@pytest.mark.parametrize("tag", [None, "rwzhvnamhqcfyfbh"])
def test_a_whole_answer_is_accepted_with_and_without_a_tag(tag):
    assert raise_if_broken_off(b"1,2\n" * 1000, tag) is None
