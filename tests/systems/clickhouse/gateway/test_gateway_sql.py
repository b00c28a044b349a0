"""SQL heads and values in SQL, without an engine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.systems.clickhouse.gateway.errors import ClickHouseError
from harness.systems.clickhouse.gateway.sql import first_word, parse_insert, parse_query, tokens


@pytest.mark.parametrize(
    ("text", "table", "columns", "format", "payload"),
    [
        (b"INSERT INTO t VALUES (1)", "t", "*", "Values", b" (1)"),
        (b"insert into t values", "t", "*", "Values", b""),
        (b"INSERT INTO db.t (a, b) FORMAT CSV\n1,2", "db.t", "a, b", "CSV", b"1,2"),
        (b"INSERT INTO t FORMAT CSV 1,2", "t", "*", "CSV", b"1,2"),
        (b"INSERT INTO t FORMAT TSV\r\n\t1", "t", "*", "TSV", b"\t1"),
        (b"INSERT INTO t FORMAT TSV\n\n1", "t", "*", "TSV", b"\n1"),
        (b"INSERT INTO TABLE t FORMAT CSV\n", "t", "*", "CSV", b""),
        (b"INSERT INTO t(a) SETTINGS x = 1, y = ' FORMAT ' FORMAT TSV\n1", "t", "a", "TSV", b"1"),
        (b"INSERT INTO FUNCTION null('a Int8') FORMAT CSV\n1", "null('a Int8')", "*", "CSV", b"1"),
        (b"INSERT INTO FUNCTION null('a Int8') (a) VALUES", "null('a Int8')", "a", "Values", b""),
        (b"INSERT INTO `a b`.`c(` (`x)`, y) FORMAT Native\n\x01\x02'", "`a b`.`c(`", "`x)`, y", "Native", b"\x01\x02'"),
        (b'INSERT INTO "values"."format" VALUES', '"values"."format"', "*", "Values", b""),
        (b"INSERT INTO format.values FORMAT CSV\n1", "format.values", "*", "CSV", b"1"),
        (b"/* SELECT */ INSERT INTO t -- FORMAT CSV\n FORMAT Parquet\nPAR1", "t", "*", "Parquet", b"PAR1"),
        (b"INSERT INTO t (* EXCEPT(b)) VALUES", "t", "* EXCEPT(b)", "Values", b""),
        (
            b"INSERT INTO {d:Identifier}.{t:Identifier} (a) VALUES (1)",
            "{d:Identifier}.{t:Identifier}",
            "a",
            "Values",
            b" (1)",
        ),
        (b"WITH (SELECT 1) AS x INSERT INTO t FORMAT CSV\n1;", "t", "*", "CSV", b"1;"),
        (b"WITH {SELECT:Int32} AS insert INSERT INTO t FORMAT TSV\n1;", "t", "*", "TSV", b"1;"),
        (b"INSERT INTO t (a) SELECT f(x) FROM (SELECT * FROM input('x String')) FORMAT CSV\n1", "t", "a", "CSV", b"1"),
    ],
)
def test_the_head_of_an_insert_is_distinguished_from_its_data(text, table, columns, format, payload):
    head = parse_insert(text)
    assert (head.table, head.columns, head.format) == (table, columns, format)
    assert text[head.payload_start :] == payload


@pytest.mark.parametrize(
    "text",
    [
        b"INSERT INTO t SELECT 1",
        b"INSERT INTO t (a) SELECT 1 FORMAT CSV",
        b"INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x",
        b"WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x FORMAT CSV",
        b"WITH 1 AS x SELECT x FORMAT CSV",
        b"INSERT INTO t",
        b"INSERT INTO t FORMAT",
        b"INSERT INTO t (a, b",
        b"INSERT",
    ],
)
def test_an_insert_without_inline_data_has_no_head(text):
    assert parse_insert(text) is None


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        (b"INSERT INTO t (a) VALUES (1)", "INSERT INTO t (a)\nFROM INFILE '/f' COMPRESSION 'none' \nFORMAT X"),
        (
            b"INSERT INTO t SETTINGS s=1 FORMAT CSV 1",
            "INSERT INTO t\nFROM INFILE '/f' COMPRESSION 'none' SETTINGS s=1\nFORMAT X",
        ),
        (
            b"INSERT INTO t WITH 1 AS k SELECT k, a FROM input('a Decimal(9, 2)') SETTINGS s=1 FORMAT CSV 1",
            "INSERT INTO t WITH 1 AS k SELECT k, a FROM file('/f', 'X', 'a Decimal(9, 2)', 'none') SETTINGS s=1",
        ),
    ],
)
def test_an_insert_reads_its_data_from_a_file_instead(text, statement):
    assert parse_insert(text).reading("/f", "X") == statement


@pytest.mark.parametrize(
    ("text", "body", "format"),
    [
        (b"SELECT 1", "SELECT 1", None),
        (b"SELECT 1 FORMAT JSON", "SELECT 1", "JSON"),
        (b"select 1 format CSV settings max_threads=1;", "select 1  settings max_threads=1", "CSV"),
        (b"SELECT ' FORMAT JSON'", "SELECT ' FORMAT JSON'", None),
        (b"SELECT 1 -- FORMAT JSON", "SELECT 1 -- FORMAT JSON", None),
        (b"SELECT 'it''s' /* ; */ FORMAT TSV ;", "SELECT 'it''s' /* ; */", "TSV"),
        (b"SELECT format FROM t", "SELECT format FROM t", None),
        (b"SELECT * FROM format(CSV, '1')", "SELECT * FROM format(CSV, '1')", None),
        (b"SELECT (SELECT 1 FORMAT x)", "SELECT (SELECT 1 FORMAT x)", None),
        (b"SELECT $$ FORMAT ; $$ FORMAT XML", "SELECT $$ FORMAT ; $$", "XML"),
    ],
)
def test_the_format_clause_is_taken_off_a_query(text, body, format):
    query = parse_query(text)
    assert (query.body, query.format) == (body, format)


@pytest.mark.parametrize(
    "text",
    [
        b"WITH insert AS (SELECT 13 AS n) SELECT * FROM insert",
        b"WITH 13 AS x, 14 AS insert SELECT insert",
        b"WITH {INSERT:Int32} AS x SELECT x",
        b"FROM t SELECT insert",
    ],
)
def test_a_name_that_is_insert_makes_no_insert(text):
    query = parse_query(text)
    assert (parse_insert(text), query.has_result, query.streams, query.reads_only) == (None, True, True, True)


@pytest.mark.parametrize(
    ("parse", "text", "code"),
    [
        (parse_insert, b"INSERT INTO t FROM INFILE 'x' FORMAT CSV", 78),
        (parse_query, b"SELECT 1; SELECT 2", 62),
        (parse_query, b"DROP TABLE a; DROP TABLE b;", 62),
        (parse_query, b"SELECT 1 INTO OUTFILE 'x' FORMAT CSV", 358),
    ],
)
def test_a_file_of_the_client_and_several_statements_are_refused(parse, text, code):
    with pytest.raises(ClickHouseError, match=rf"^Code: {code}\."):
        parse(text)


@pytest.mark.parametrize("text", [b"", b"  \n", b"-- only a comment", b"/* one */ -- two"])
def test_a_text_without_a_word_has_no_first_word(text):
    assert first_word(text) == b""


_NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True).filter(
    lambda name: name.upper() not in {"INTO", "TABLE", "FUNCTION", "SELECT", "WITH", "VALUES", "FORMAT", "INFILE"}
)
_SPACES = st.sampled_from([b" ", b"\n", b"\t ", b" /* ( ' */ ", b" -- ) '\n"])


@given(_NAMES, st.lists(_NAMES, max_size=4), _SPACES, st.sampled_from(["CSV", "Native", "Parquet"]), st.binary())
def test_any_payload_is_found_behind_any_head(table, columns, space, format, payload):
    names = b"(" + ",".join(columns).encode() + b")" if columns else b""
    head = space.join([b"INSERT", b"INTO", table.encode(), names, b"FORMAT", format.encode()]) + b"\n"
    found = parse_insert(head + payload)
    assert (found.table, found.format, found.payload_start) == (table, format, len(head))
    assert found.columns == (",".join(columns) if columns else "*")


@given(st.binary())
def test_the_tokens_of_any_bytes_lie_in_order_within_them(text):
    end = 0
    for token in tokens(text):
        assert end <= token.start < token.end <= len(text)
        assert text[token.start : token.end] == token.text
        end = token.end


@given(st.binary(max_size=200))
def test_any_bytes_in_a_query_are_parsed_or_refused(text):
    try:
        query = parse_query(b"SELECT 1 " + text)
    except ClickHouseError:
        return
    assert query.has_result


@pytest.fixture
def pairs(gateway):
    """An empty table of a number and a string."""
    gateway.query("CREATE TABLE pairs (number Int32, word String) ENGINE = Memory")
    yield lambda: gateway.query("SELECT number, word FROM pairs ORDER BY number")
    gateway.query("DROP TABLE pairs")


@pytest.mark.parametrize("head", ["INSERT INTO", "WITH 1 AS k INSERT INTO"])
def test_a_semicolon_at_the_end_of_inline_data_is_a_part_of_the_value(gateway, pairs, head):
    gateway.query(f"{head} pairs FORMAT TabSeparated\n1\tabc;")
    assert pairs() == b"1\tabc;\n"


def test_an_insert_from_input_takes_the_data_that_follow_it(gateway, pairs):
    select = "WITH 5 AS k SELECT a + k, b FROM input('a Int32, b String') WHERE a > 1"
    gateway.query(f"INSERT INTO pairs {select} FORMAT CSV\n1,one\n2,two;")
    assert pairs() == b"7\ttwo;\n"


def test_query_parameters_count_in_the_values_of_an_insert_and_name_its_table(gateway, pairs):
    insert = "INSERT INTO {table:Identifier} (word, number) VALUES (concat({w:String}, '!'), {n:Int32}), ('x', 4)"
    gateway.query(insert, param_table="pairs", param_w="it's", param_n="3")
    assert pairs() == b"3\tit\\'s!\n4\tx\n"


@pytest.mark.parametrize(
    "pieces", [(b"INSERT INTO pairs FORMAT T", b"SV\n1\ta"), (b"INSERT INTO pairs FORMAT TSV", b"\n1\ta")]
)
def test_a_head_in_two_pieces_is_read_whole(gateway, pairs, pieces):
    answer = gateway.ask(body=iter(pieces))
    assert (answer.status, pairs()) == (200, b"1\ta\n"), answer.body
