"""Postgres: https://www.postgresql.org/docs/current/"""

from harness.address import Tls
from harness.systems.system import Address, System

# A client asks for TLS by a message of its own, and S says that it may begin:
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
            "POSTGRES_URI",
            ("postgresql", "postgres"),
            5432,
            _TLS,
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
