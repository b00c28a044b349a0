"""How a query stands in SQLAlchemy, whatever the database."""


def for_text(query):
    r"""Return a query as SQLAlchemy's text() takes it: with \ before every colon, which else begins a parameter."""
    return query.replace(":", r"\:")
