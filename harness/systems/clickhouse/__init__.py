"""ClickHouse: https://clickhouse.com/docs"""

from harness.address import Tls
from harness.systems.system import Address, System

SYSTEM = System(
    name="clickhouse",
    title="ClickHouse",
    place=2,
    addresses=(
        Address(
            "clickhouse_http",
            "clickhouse_http_url",
            "ClickHouse HTTP for --external: http://user:password@host:port",
            "CLICKHOUSE_URL",
            ("http", "https"),
            8123,
            Tls("https"),
        ),
        Address(
            "clickhouse_native",
            "clickhouse_native_uri",
            "ClickHouse native protocol for --external: clickhouse://user:password@host:port",
            "CLICKHOUSE_NATIVE_URI",
            ("clickhouse", "clickhouses"),
            9000,
            Tls("clickhouses", ("", "ca_certs={certificate}")),
        ),
    ),
    source_profile="memory",
    variables=("CLICKHOUSE_",),
    no_space=("NOT_ENOUGH_SPACE",),
    embedded="The figures of ClickHouse are those of its engine inside a Python process (chDB) behind a gateway in "
    "Python, which adds some milliseconds to every call and flattens the differences between the fastest transports.",
)
