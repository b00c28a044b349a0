"""Write the tables of README.md: python arrow-wire/types_table.py [--check]

Types come from the code, figures from the reference run of the lab around it.

For each Arrow type the tables list the types of a server that it can go into. The type that the library creates a table
with comes first. The library refuses a value that the server's type cannot hold (`WrongValue`).
"""

import csv
import json
import re
import sys
from pathlib import Path

import pyarrow as pa
from arrow_wire import clickhouse_create, postgres_create, postgres_reader, postgres_types
from arrow_wire.clickhouse_native import Columns, Result
from arrow_wire.errors import UnsupportedType
from arrow_wire.postgres_recipes import recipe

README = Path(__file__).parent / "README.md"
REFERENCE = README.parent.parent / "results" / "reference" / "matrix"
BEGIN, END = "<!-- types: made by types_table.py -->", "<!-- end of types -->"
ARROW = (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float32(), pa.float64(), pa.decimal128(18, 4), pa.decimal256(60, 4), pa.string(), pa.large_string(),
    pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.binary(), pa.binary(16), pa.uuid(), pa.date32(),
    pa.time64("us"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.duration("us"),
    pa.list_(pa.int32()), pa.list_(pa.string()), pa.struct([("a", pa.int32())]), pa.map_(pa.string(), pa.int32()),
)  # fmt: skip
CLICKHOUSE = (
    "Bool", "Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64",
    "BFloat16", "Decimal(18, 4)", "Decimal(60, 4)", "String", "FixedString(16)", "LowCardinality(String)", "UUID",
    "IPv4", "IPv6", "Date", "Date32", "DateTime", "DateTime64(6)", "DateTime64(9)", "Time64(6)", "Enum8('a' = 1)",
    "JSON", "Array(Int32)", "Array(String)", "Tuple(a Int32)", "Map(String, Int32)",
)  # fmt: skip


def postgres(arrow_type: pa.DataType) -> tuple[str, list[str]]:
    """Return the type that a new table gets, and all types that take the Arrow type as it is."""
    try:
        made = postgres_create.sql_type(pa.field("c", arrow_type))
    except UnsupportedType:
        made = ""
    known = [(oid, -1) for _, *oids in postgres_types._BUILT_IN for oid in oids if oid]
    takes = [
        one.shown
        for one in postgres_types.types(known)
        if (found := recipe(arrow_type, one)) is not None and found.cast is None
    ]
    return made, takes


def clickhouse(arrow_type: pa.DataType) -> tuple[str, list[str]]:
    """As `postgres`."""
    made = clickhouse_create._type(arrow_type, False) or ""
    takes = []
    empty = pa.array([], arrow_type.storage_type if arrow_type == pa.uuid() else arrow_type)
    array = pa.ExtensionArray.from_storage(arrow_type, empty) if arrow_type == pa.uuid() else empty
    for sql_type in CLICKHOUSE:
        try:
            Columns([("c", array, sql_type)])
            takes.append(sql_type)
        except (TypeError, NotImplementedError):
            continue
    return made, takes


# Short names for groups of types, which one Arrow type mostly goes into together.
GROUPS = (
    ("any integer", {"Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64"}),
    ("any integer", {"int2", "int4", "int8"}),
    ("any float", {"Float32", "Float64", "BFloat16"}),
    ("any float", {"float4", "float8"}),
    ("any decimal", {"Decimal(18, 4)", "Decimal(60, 4)"}),
    ("any date", {"Date", "Date32"}),
    ("any timestamp", {"DateTime", "DateTime64(6)", "DateTime64(9)"}),
    ("any string", {"String", "LowCardinality(String)", "FixedString(16)"}),
    ("any string", {"name", "bpchar", "varchar"}),
    ("any address", {"IPv4", "IPv6"}),
    ("any address", {"cidr", "inet", "macaddr", "macaddr8"}),
)


def shortened(takes: list[str], made: str) -> str:
    """Return the types that also take a column, with one name for all types of a group."""
    listed, left = [], [name for name in takes if name != made]
    for word, group in GROUPS:
        if group <= {*takes, made} and len(group & {*left}) > 1:
            listed.append(word)
            left = [name for name in left if name not in group]
    return ", ".join([*listed, *(f"`{name}`" for name in left)]) or "-"


# The name of each client in the table, and a pattern for its transports in the reference run.
CLIENTS = {
    "arrow-wire": r"(psycopg|http_client)\.\w+_tuned",
    "pgpq (over psycopg)": r"pgpq\.\w+",
    "ADBC": r"adbc\.(?!\w+(write|read)_database)\w+",
    "connectorx": r"connectorx\.(?!\w+read_database)\w+",
    "clickhouse-connect": r"clickhouse_connect\.\w+",
    "polars' own functions": r"\w+\.\w+_polars_(write_database|read_database\w*)",
}


def figures() -> str:
    """Return the best exact median of each client in the reference run, by database, operation and frame."""
    with (REFERENCE / "summary.csv").open(encoding="utf-8", newline="") as file:
        every = [run for run in csv.DictReader(file) if run["status"] == "ok" and run["fidelity"] == "exact"]
    runs = [run for run in every if run["experiment"] == "matrix"]  # other experiments have other tables
    existing = [run for run in every if run["experiment"] == "existing"]
    columns = [(s, o, f) for s in ("postgres", "clickhouse") for o in ("write", "read") for f in ("polars", "pandas")]
    shown = {"postgres": "Postgres", "clickhouse": "ClickHouse"}
    lines = [
        "| client | " + " | ".join(f"{shown[s]} {o}, {f}" for s, o, f in columns) + " |",
        "|---" + "|---:" * 8 + "|",
    ]
    for client, pattern in CLIENTS.items():
        cells = []
        for system, operation, frame in columns:
            cells.append(best(runs, pattern, (system, operation, frame)))
        lines.append(f"| {client} | " + " | ".join(cells) + " |")
    rows, passes = {run["rows"] for run in runs if run["operation"] in ("write", "read")}, {run["n"] for run in runs}
    facts = json.loads((REFERENCE / "environment.json").read_text("utf-8"))
    ids = ", ".join(f"`{one['run_id']}`" for one in facts.get("together", [facts]))
    note = (
        f"Seconds, medians of {max(map(int, passes))} calls, {int(max(rows)):,} rows: {ids} of the lab. Each client's"
    )
    note += " fastest call that changes no value; `-`: it has none."
    ours, other = (
        " and ".join(best(existing, CLIENTS[client], ("postgres", "write", frame)) for frame in ("polars", "pandas"))
        for client in ("arrow-wire", "pgpq (over psycopg)")
    )
    wrote = (
        "Writes go into an empty table, of which arrow-wire builds the index afterwards. Into a table with rows, which"
    )
    wrote += f" keeps its index, polars and pandas take {ours} with arrow-wire, {other} with pgpq."
    return "\n".join([*lines, "", note, wrote])


def best(runs: list[dict[str, str]], pattern: str, of: tuple[str, str, str]) -> str:
    """Return the least median of a client's transports for a database, an operation and a frame; `-` without one."""
    found = [
        float(run["median_seconds"])
        for run in runs
        if (run["system"], run["operation"], run["frame"]) == of
        and re.fullmatch(pattern, run["transport"].partition(".")[2])
    ]
    return f"{min(found):.3f}" if found else "-"


def table() -> str:
    """Return both tables: the types for writing, and those for reading."""
    lines = ["| Arrow | Postgres makes | Postgres also takes it in | ClickHouse makes | ClickHouse also takes it in |"]
    lines += ["|---|---|---|---|---|"]
    for arrow_type in ARROW:
        cells = [f"`{arrow_type}`"]
        for made, takes in (postgres(arrow_type), clickhouse(arrow_type)):
            cells += [f"`{made}`" if made else "refused", shortened(takes, made)]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", 'The Arrow type of each server type after a read (`as_="arrow"`):', ""]
    lines += ["| Postgres | Arrow | ClickHouse | Arrow |", "|---|---|---|---|"]
    oids = [(oid, -1) for _, oid, _ in postgres_types._BUILT_IN]
    left = [
        (one.shown, str(postgres_reader.reading(one, postgres_reader.LARGE).arrow_type))
        for one in postgres_types.types(oids)
    ]
    right = [(name, str(Result([("c", name)], pa.large_string()).schema.field(0).type)) for name in CLICKHOUSE]
    for number in range(max(len(left), len(right))):
        cells = []
        for side in (left, right):
            cells += [f"`{part}`" for part in side[number]] if number < len(side) else ["", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Write the tables, or fail where README.md has others."""
    text = made = README.read_text("utf-8")
    for begin, end, make in ((BEGIN, END, table), ("<!-- figures -->", "<!-- end of figures -->", figures)):
        before, _, rest = made.partition(begin)
        made = f"{before}{begin}\n\n{make()}\n\n{end}{rest.partition(end)[2]}"
    if "--check" in sys.argv:
        sys.exit(
            0 if made == text else "README.md: its tables are not what the code and the run say; run types_table.py"
        )
    README.write_text(made, "utf-8")


if __name__ == "__main__":
    main()
