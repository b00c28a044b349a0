"""Values that arrive as a server takes them: inline data after WITH, input(), and query parameters of an INSERT."""

import pytest


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
