"""Postgres: https://www.postgresql.org/docs/current/"""

from harness.address import Address, Tls
from harness.systems.system import Place, System

# A client requests TLS with a special message, and the answer S means that it may begin:
# https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL
_TLS = Tls(query=("sslmode=disable", "sslmode=require"), request=bytes.fromhex("0000000804d2162f"), answer=b"S")

SYSTEM = System(
    name="postgres",
    title="Postgres",
    place=1,
    addresses=(
        Address(
            "postgres",
            "postgres_uri",
            "Postgres for --external: postgresql://user:password@host:port/db",
            ("postgresql", "postgres"),
            5432,
            _TLS,
        ),
    ),
    source_profile="unlogged",
    fixes={
        "pg_parquet": {
            "embedded": "make up starts one that does (in a clone), or set LAB_POSTGRES_BIN to one",
            "compose": "run make up again",
            "external": "run CREATE EXTENSION pg_parquet",
        }
    },
    shares_folder=True,
    variables=("PG",),
    plain=(
        r"row is too big: size \d+, maximum size \d+",
        r"index row (?:size \d+ exceeds|requires \d+ bytes, maximum size is \d+)(?: btree version \d+ maximum \d+)?",
        r"canceling statement due to (?:statement|lock) timeout",
        r"terminating connection due to [\w-]+ timeout",
        r'column name "[^"]+" conflicts with a system column name',
        r'null value in column "[^"]+" of relation "[^"]+" violates not-null constraint',
        r'duplicate key value violates unique constraint "[^"]+"',
        r"permission denied for \w+ [\w.]+",
        r"must be owner of \w+ [\w.]+",
        r"cannot execute [A-Z ]+ in a read-only transaction",
        r"tables can have at most \d+ columns",
        r"out of shared memory",
    ),
    interrupted=(
        "terminating connection due to administrator command",
        "terminating connection because of crash of another server process",
        "the database system is in recovery mode",
        "the database system is starting up",
        "the database system is shutting down",
        "the database system is not yet accepting connections",
    ),
    killed=r"\(PID \d+\) was terminated by signal (9|15)\b",  # a process that crashes ends with another signal
    installed_at=Place(
        "postgres_bin",
        "Folder with `postgres` and `initdb` (/usr/lib/postgresql/18/bin): the embedded lab starts that server instead "
        "of its own",
    ),
    keys_in_environment=True,
)
