"""What the tuned ways ask the server about the columns of a table or query: names and types, by `arrow_wire`."""


def columns_of(connection, query):
    """Return the names and the types of a query's columns; types that not every server has are asked for."""
    from arrow_wire import postgres_types

    cursor = connection.execute(f"{query} LIMIT 0")
    result = cursor.pgresult
    found = [(result.ftype(number), result.fmod(number)) for number in range(result.nfields)]
    unknown = [oid for oid, _ in found if not postgres_types.known(oid)]
    answer = connection.execute(postgres_types.question(unknown)).fetchall() if unknown else ()
    return [column.name for column in cursor.description], postgres_types.types(found, answer)
