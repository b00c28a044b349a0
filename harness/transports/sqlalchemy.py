"""How to pass a query to SQLAlchemy, for any database."""


def for_text(query):
    r"""Escape a query for SQLAlchemy's text(): with \ before every colon, which otherwise starts a parameter."""
    return query.replace(":", r"\:")
