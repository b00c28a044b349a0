"""How names and texts stand in the SQL of Postgres, once for all of its transports and for the lab itself.

https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS
"""


def identifier(name):
    """Return the name of a table or column as SQL: between double quotes, every double quote in it twice."""
    return '"' + name.replace('"', '""') + '"'


def identifiers(names):
    """Return several names as SQL, with commas between them."""
    return ", ".join(map(identifier, names))


def literal(text):
    """Return a text as SQL: between single quotes, every single quote in it twice (standard_conforming_strings)."""
    return "'" + text.replace("'", "''") + "'"
