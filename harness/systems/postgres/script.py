"""What a printed program for one table of Postgres has beside its transport: how the table is made."""

VARIABLE, PACKAGES = "POSTGRES_URI", ("psycopg",)
CREATE_TABLE = '''\
def create_table():
    """Create the table where there is none."""
    import psycopg

    with psycopg.connect(os.environ["POSTGRES_URI"], autocommit=True) as connection:
        connection.execute(CREATE_TABLE)'''
