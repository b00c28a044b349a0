"""How names and texts stand in the SQL of ClickHouse, once for all of its transports and for the lab itself.

https://clickhouse.com/docs/sql-reference/syntax#identifiers
"""


def identifier(name):
    r"""Return the name of a table or column as SQL: between backticks, with \ before every backtick and backslash."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def identifiers(names):
    """Return several names as SQL, with commas between them."""
    return ", ".join(map(identifier, names))


def literal(text):
    r"""Return a text as SQL: between single quotes, with \ before every single quote and backslash."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def for_text(query):
    r"""Return a query as SQLAlchemy's text() takes it: with \ before every colon, which else begins a parameter."""
    return query.replace(":", r"\:")
