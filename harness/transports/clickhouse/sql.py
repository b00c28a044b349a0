"""How to quote names and strings in ClickHouse's SQL, for all its transports and for the lab itself.

https://clickhouse.com/docs/sql-reference/syntax#identifiers
"""


def identifier(name):
    r"""Return the name of a table or column as SQL: in backticks, with \ before every backtick and backslash."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def identifiers(names):
    """Return several names as comma-separated SQL."""
    return ", ".join(map(identifier, names))


def insert_into(table, columns):
    """Return the head of an INSERT, with every name quoted."""
    return f"INSERT INTO {identifier(table)} ({identifiers(columns)})"


def literal(text):
    r"""Return a string as SQL: in single quotes, with \ before every single quote and backslash."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
