"""Postgres: https://www.postgresql.org/docs/current/"""

from harness.systems.system import Address, System

SYSTEM = System(
    name="postgres",
    title="Postgres",
    place=1,
    addresses=(
        Address(
            "postgres",
            "postgres_uri",
            "Postgres for --external: postgresql://user:password@host:port/db",
            "POSTGRES_URI",
            ("postgresql", "postgres"),
            5432,
        ),
    ),
    source_profile="unlogged",
    fixes={
        "pg_parquet": "put its Debian package into images/postgres/packages, run make clean and make up "
        "(or CREATE EXTENSION pg_parquet where it is installed)"
    },
    shares_folder=True,
    variables=("PG",),
)
