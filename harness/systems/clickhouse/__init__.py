"""ClickHouse: https://clickhouse.com/docs"""

from harness.address import Address, Tls
from harness.systems.system import Place, System

SYSTEM = System(
    name="clickhouse",
    title="ClickHouse",
    place=2,
    addresses=(
        Address(
            "clickhouse_http",
            "clickhouse_http_url",
            "ClickHouse HTTP for --external: http://user:password@host:port",
            ("http", "https"),
            8123,
            Tls("https"),
        ),
        Address(
            "clickhouse_native",
            "clickhouse_native_uri",
            "ClickHouse native protocol for --external: clickhouse://user:password@host:port",
            ("clickhouse", "clickhouses"),
            9000,
            Tls("clickhouses", ("", "ca_certs={certificate}")),
        ),
    ),
    source_profile="memory",
    variables=("CLICKHOUSE_",),
    no_space=("NOT_ENOUGH_SPACE",),
    plain=(
        r"Elements '[^']+' and '[^']+' of Nested data structure '[^']+' \(Array columns\) have different array sizes",
        r"Timeout exceeded: elapsed [\d.]+ \w+, maximum: [\d.]+(?: \w+)?",
        r"[Mm]emory limit (?:\([\w ]+\) )?exceeded",
        r"Too many partitions for single INSERT block \(more than \d+\)",
        r"Cannot execute query in readonly mode",
        r"Not enough privileges",
    ),
    embedded="ClickHouse here is its engine in a Python process (chDB) behind [a gateway](docs/explanation/limits.md).",
    installed_at=Place(
        "clickhouse_binary",
        "The program `clickhouse` (curl https://clickhouse.com/ | sh leaves one): the embedded lab starts that server "
        "instead of its own",
    ),
)
