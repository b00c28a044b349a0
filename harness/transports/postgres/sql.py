"""How to quote names and strings in Postgres' SQL, for all its transports and for the lab itself.

https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS
"""


def identifier(name):
    """Return the name of a table or column as SQL: in double quotes, with every double quote doubled."""
    return '"' + name.replace('"', '""') + '"'


def identifiers(names):
    """Return several names as comma-separated SQL."""
    return ", ".join(map(identifier, names))


def copy_from_stdin(table, columns, options=""):
    """Return COPY ... FROM STDIN for these columns, with every name quoted."""
    return f"COPY {identifier(table)} ({identifiers(columns)}) FROM STDIN {options}"


def copy_to_stdout(table, options=""):
    """Return COPY ... TO STDOUT for all rows of a table, with its name quoted."""
    return f"COPY (SELECT * FROM {identifier(table)}) TO STDOUT {options}"


def literal(text):
    """Return a string as SQL: in single quotes, with every single quote doubled (standard_conforming_strings)."""
    return "'" + text.replace("'", "''") + "'"
