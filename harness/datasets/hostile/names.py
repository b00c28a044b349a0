"""Column and table names that break transports of dataframes, by the kind of values they are.

A kind has six column names, one for each type of the plain table, and two table names: for a read and for a write.
Every database of the lab can hold each of them, because none is longer than 63 bytes.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """The names of this kind: six for columns and two for tables."""

    meaning: str
    columns: tuple[str, str, str, str, str, str]
    tables: tuple[str, str]


VICTIM = "hostile_victim"  # a table that exists while the names below are tried, and that their SQL would change

NAMES = {
    "name_double_quote": Names(
        "names with double quotes, at one end and inside",
        ('a"b', '"a', '"', 'a"', 'a""b', '"a"b'),
        ('a"b', '"a'),
    ),
    "name_backtick": Names(
        "names with backticks, at one end and inside",
        ("a`b", "`a", "`", "a`", "a``b", "`a`b"),
        ("a`b", "`a"),
    ),
    "name_single_quote": Names(
        "names with single quotes, at one end and inside; one of a table ends them and begins a statement",
        ("a'b", "'a", "'", "a'", "a''b", "'a'b"),
        ("a'b", f"{VICTIM}'; DROP TABLE {VICTIM}; --"),
    ),
    "name_quoted": Names(
        "names that are in quotes themselves, from one end to the other",
        ('"a"', "`a`", "'a'", '""', "``", '"`a`"'),
        ('"a"', "`b`"),
    ),
    "name_statement": Names(
        "names that end the double quotes around them, and begin a statement",
        tuple(f'{place}"); DROP TABLE {VICTIM}; --' for place in range(6)),  # type: ignore[arg-type]
        (f'{VICTIM}"; DROP TABLE {VICTIM}; --', f'{VICTIM}" SELECT 1; --'),
    ),
    "name_backtick_statement": Names(
        "names that end the backticks around them, and begin a statement",
        tuple(f"{place}`); DROP TABLE {VICTIM}; --" for place in range(6)),  # type: ignore[arg-type]
        (f"{VICTIM}`; DROP TABLE {VICTIM}; --", f"{VICTIM}` SELECT 1 -- "),
    ),
    "name_backslash": Names(
        r"names with backslashes, at their ends and before letters and quotes",
        ("a\\b", "a\\", "\\N", "\\t", "\\\\", "a\\`\\\"\\'"),
        ("a\\", "b\\`\\\"\\'"),
    ),
    "name_percent": Names(
        "names with percent signs, as formats of strings (%s) and in addresses (%20)",
        ("100%", "%s", "%(a)s", "%%", "%20", "a %d"),
        ("100% %s", "%20"),
    ),
    "name_parameter": Names(
        "names that look like parameters of a query: :a, $1, ?, {}",
        (":a", "a:b", "$1", "?", "{a:UInt8}", "{0} {table}"),
        (":a $1 ?", "{a:UInt8} {}"),
    ),
    "name_space": Names(
        "names with spaces, at their ends, inside and alone",
        ("a b", " a", "a ", "  ", " ", "a  b"),
        (" a ", "b  c"),
    ),
    "name_line": Names(
        "names with tabs and line breaks",
        ("a\tb", "a\nb", "a\r\nb", "\t", "\n", "a\r"),
        ("a\tb", "a\nb"),
    ),
    "name_capitals": Names(
        "names with capital letters",
        ("A", "Name", "someName", "VALUE", "Select", "ID"),
        ("Capitals", "SomeTable"),
    ),
    "name_case": Names(
        "names of columns that only capital letters tell apart",
        ("name", "Name", "NAME", "nAME", "é", "É"),
        ("name_case", "Name_case"),
    ),
    "name_unicode": Names(
        "names in other letters than ASCII's, with 4-byte UTF-8 and combining marks",
        ("größe", "名前", "\U0001f98a", "e\u0301", "שם", "\u00a0a\ufeff"),
        ("größe \U0001f98a", "名前"),
    ),
    "name_keyword": Names(
        "names that are words of SQL",
        ("select", "from", "order", "user", "null", "format"),
        ("table", "values"),
    ),
    "name_mark": Names(
        "names with commas, parentheses, brackets, signs of comments, digits and minus first",
        ("a,b", "a)(", "[a]", "1", "-- a", "/* a"),
        ("a, b) (c", "-- b"),
    ),
    "name_dot": Names(
        "names with dots, as between a schema and its table",
        ("a.b", ".a", "a.", ".", "a..b", "a.b.c"),
        ("a.b", "public.c"),
    ),
    "name_pattern": Names(
        "names that are patterns: *, a_%, regular expressions",
        ("*", "^.*$", "a_%", "^a", "[a-z]+", "a*"),
        ("*", "^.*$"),
    ),
    "name_long": Names(
        "names of 63 bytes, alike but for the last",
        tuple("x" * 62 + last for last in "abcdef"),  # type: ignore[arg-type]
        ("y" * 63, "y" * 62 + "z"),
    ),
}
