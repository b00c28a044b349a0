"""The pages of the docs: what they name exists, and README answers eight directions from the reference runs."""

import re
import shlex
import subprocess
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise
from types import SimpleNamespace

import pytest
import typer

from harness import docs
from harness.cli.commands import app
from harness.docs import readme, reference, tables
from harness.lab import packages
from harness.model import LabError, Origin, Status
from harness.registry import catalogue
from harness.report.answers import answers
from harness.report.crossings import curves
from harness.report.figures import route
from harness.report.summary import summarise
from harness.settings import ROOT
from harness.suites import suite_files
from harness.suites.suite import Comparison
from harness.systems import SYSTEMS
from tests.every import every
from tests.report.cases import line, row, runs, suite

GROUP = typer.main.get_command(app)
TYPED = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/get-started.md",
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/how-to/*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/explanation/*.md")),
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/dev/*.md")),
)


def typed():
    """The commands of the lab in prose, by file: the code after `lab`, without its comment."""
    for name in TYPED:
        for typed_line in re.findall(r"(?:^ {4,}(?:- run: )?|`)(?:\.venv/bin/)?(lab [a-z][^`\n]*)", *_lines(name)):
            yield pytest.param(typed_line, id=f"{name}: {typed_line}")


def _lines(name):
    return (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE


def typed_targets(name):
    return re.findall(r"(?:^ {4,}|`|&& )make ([a-z][a-z-]*)", *_lines(name))


def test_every_command_and_option_is_on_the_page():
    text = tables.page(app, "lab")
    for name, command in GROUP.commands.items():
        part = text.partition(f"\n## lab {name}\n")[2].partition("\n## ")[0]
        assert part.count(f"$ lab {name}") == 1
        options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
        assert options <= set(re.findall(r"`(--[a-z-]+)", part)) | {"--help"}
        assert f"](#lab-{name})" in text


def test_the_page_of_commands_shows_help_letter_by_letter():
    other = typer.Typer(help="Say <what> it is.", rich_markup_mode=None)
    other.command("one")(lambda: None)

    @other.command()
    def two(glob: str = typer.Option("*", help="Glob, such as '*.a_*'")) -> None:
        """Do the second thing."""

    text = tables.page(other, "tool")
    assert "Say &lt;what> it is." in text
    assert r"Glob, such as '\*.a\_\*'" in text


@pytest.mark.parametrize("line", list(typed()))
def test_a_command_in_prose_is_one_that_the_application_takes(line):
    words = shlex.split(line.partition("  #")[0])
    command = GROUP.commands.get(words[1])
    assert command, f"there is no command {words[1]}"
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word.partition("=")[0] for word in words[2:] if word.startswith("-")} <= known


@pytest.mark.parametrize("name", TYPED)
def test_a_target_of_make_in_prose_is_one_of_the_makefile(name):
    there = re.findall(r"^([a-z-]+(?: [a-z-]+)*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(typed_targets(name)) <= {target for line in there for target in line.split()}


README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [" ".join(found.split()) for found in re.findall(r"(?:^ {4}\S.*\n(?:\n(?= {4}))?)+", README, re.MULTILINE)]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_make_alone_prints_four_groups_of_at_most_70_columns():
    done = subprocess.run(["make", "--silent", "-C", ROOT, "help"], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [line for line in lines if len(line) > 70] == []
    heads = [line for line, below in pairwise(lines) if below.startswith("  make ") and not line.startswith(" ")]
    assert heads == ["Measure, without Docker", "Compose lab", "Tests", "Maintenance"]


@pytest.mark.parametrize("command", ["make install", "make bench", "make up && make bench && make down", "make test"])
def test_a_command_that_a_newcomer_needs_is_alone_in_its_block(command):
    """A copy button pastes a whole block: not two alternatives, and no comment, which zsh takes for arguments."""
    assert command in BLOCKS


def test_readme_is_short_and_narrow():
    lines = README.splitlines()
    prose = [line for line in lines if not line.startswith(("|", "[", "    "))]  # not tables, links and screens
    assert len(lines) <= 110
    assert max(map(len, prose)) <= 80


def test_readme_says_before_any_figure_that_every_value_is_compared():
    first = " ".join(README.partition(readme.BEGIN)[0].split())
    assert "without losing a value" in first
    assert "compares every value that arrives" in first


def test_the_number_of_transports_is_that_of_the_catalogue_in_round_hundreds():
    there = sum(entry.moves_a_frame for entry in catalogue().values())
    assert re.findall(r"more than (\d+) recipes", " ".join(README.split())) == [str(there // 100 * 100)]


@pytest.mark.parametrize("name", PAGES)
def test_every_link_to_a_file_leads_to_one(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", text, re.MULTILINE)
    paths = [(inline or below).partition("#")[0] for inline, below in links]
    missing = [
        path for path in paths if path and "://" not in path and not (ROOT / name).parent.joinpath(path).exists()
    ]
    assert missing == []


OUTSIDE = ("docs/catalogue/", "docs/upstream/")  # put below the catalogue by the hook; notes
CONFIGURATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_page_of_the_docs_has_a_place_in_the_navigation():
    listed = re.findall(r"^ +- (\S+\.md)$", CONFIGURATION, re.MULTILINE)
    pages = {path.relative_to(ROOT).as_posix() for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]}
    assert {page for page in pages if not page.startswith(OUTSIDE)} == {page for page in listed if page in pages}
    assert len(listed) == len(set(listed))


def test_a_warning_ends_the_build():
    """With --quiet MkDocs counts no warning. Without the setting for links it accepts any link."""
    (build,) = re.findall(r"mkdocs build.*", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert "--strict" in build
    assert "quiet" not in build
    assert "links: {not_found: warn, anchors: warn, " in CONFIGURATION


def test_no_page_loads_anything_over_a_network():
    assert "font: false" in CONFIGURATION
    assert "iframe-worker" in re.search(r"polyfills: \[(.*)\]", CONFIGURATION)[1]


PAGE = (ROOT / "docs/how-to/troubleshooting.md").read_text("utf-8")
HEADINGS = re.findall(r"^### `(.+)`$", PAGE, re.MULTILINE)
OF_DOCKER = re.findall(r"^\| `(.+?)` \|", PAGE, re.MULTILINE)


def printed() -> str:
    """Return all source that prints, with the pieces of a string joined."""
    files = (path for folder in ("harness", "environments", "compose") for path in (ROOT / folder).rglob("*"))
    sources = (path.read_text("utf-8") for path in files if path.is_file() and path.suffix in ("", ".py", ".tsv"))
    return re.sub(r"[\"']\s*\n\s*f?[\"']", "", "\n".join(sources)).replace("\\", "")


def test_each_message_is_one_that_is_printed():
    parts = [part.strip() for message in [*HEADINGS, *OF_DOCKER] for part in message.split("…")]
    source = printed()
    assert len(HEADINGS) >= 15
    assert [part for part in parts if part not in source] == []


FINDINGS = (ROOT / "docs/findings.md").read_text("utf-8")
SECTIONS = {
    part.partition("\n")[0]: part.partition("\n")[2]
    for part in re.split(r"^## ", FINDINGS, flags=re.MULTILINE)[1:]
    if "/report.md)" in part
}


def figures(text: str) -> set[str]:
    """Return the numbers of the prose: not those of tables, comparisons made from runs, links, pictures and code."""
    text = re.sub(r"<!-- comparisons of .*?<!-- end of comparisons -->", "", text, flags=re.DOTALL)
    prose = re.sub(r"^\|.*$|^!.*$|<!--.*?-->|\]\([^)]*\)|`[^`]*`", "", text, flags=re.MULTILINE)
    return set(re.findall(r"\d(?:[\d,.]*\d)?", prose))


def test_each_suite_has_its_findings():
    linked = set(re.findall(r"reference/(\w+)/report\.md", FINDINGS))
    assert linked == {path.name for path in (ROOT / "results/reference").iterdir()}


@every(SECTIONS, str)
def test_every_figure_is_in_the_report_of_its_section_or_in_readme(section):
    (suite,) = set(re.findall(r"reference/(\w+)/report\.md", SECTIONS[section]))
    said = README + (ROOT / f"results/reference/{suite}/report.md").read_text("utf-8")
    there = set(re.findall(r"\d(?:[\d,.]*\d)?", said))
    assert figures(SECTIONS[section]) - there == set()


def test_comparisons_in_a_page_are_made_from_the_run_and_follow_it(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    rows = [
        row("a", experiment="x", seconds=seconds * scatter, parameters=f"tls={tls}", pass_number=number)
        for seconds, tls in ((1.0, "off"), (1.5, "on"))
        for number, scatter in enumerate((1, 1.01, 0.99), start=1)
    ]
    about = replace(suite(), comparisons=(Comparison("with TLS it", "x", {"tls": "on"}, {"tls": "off"}),))
    monkeypatch.setattr(docs.reference, "of", lambda name: (about, SimpleNamespace(rows=rows), []))
    page.write_text("<!-- comparisons of made: with TLS it -->\nold\n<!-- end of comparisons -->\n")
    assert "\n- With TLS: 50 % longer in 1 of 1.\n" in docs.page(page)
    assert "old" not in docs.page(page)
    page.write_text("<!-- comparisons of made: without it -->\n<!-- end of comparisons -->\n")
    with pytest.raises(LabError, match='no comparison "without it" in the report of made'):
        docs.page(page)


LINES = [line for line in (ROOT / "docs/assumptions.md").read_text().splitlines() if line.startswith("| `")]
ROWS = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in LINES]


def test_every_assumption_names_a_file_of_the_lab():
    assert len(ROWS) > 15
    assert [row[0] for row in ROWS if not (ROOT / row[0].strip("`")).is_file()] == []


def test_every_assumption_says_where_and_when_it_was_read_and_whether_it_holds():
    for file, assumption, source, holds, date in ROWS:
        assert assumption, file
        assert re.search(r"`[^`]+`|package index", source), f"{file}: expected a file of upstream, found {source}"
        assert re.match(r"(yes|no|newer)\b", holds), f"{file}: {holds}"
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", date), f"{file}: {date}"


def test_an_assumption_that_does_not_hold_says_what_the_lab_does_instead():
    assert [row[0] for row in ROWS if row[3].startswith("no") and ": " not in row[3]] == []


TUNED, PGPQ, ADBC = (
    f"postgres.{name}"
    for name in ("psycopg.write_polars_tuned", "pgpq.write_polars_copy_binary", "adbc.write_polars_ingest")
)
EXTENSION = "postgres.pg_parquet.write_polars_parquet_stream"
USUAL = "postgres.sqlalchemy.write_polars_write_database"
JOINED = "\N{NO-BREAK SPACE}"
TO_SQL = "postgres.sqlalchemy.write_pandas_to_sql"


def block():
    return readme.page().partition(readme.BEGIN)[2].partition(readme.END)[0]


def made_up(**seconds):
    """Three ok calls of each transport, by id with its dots as `__`; a tuple also has changed fields."""
    found = []
    for name, given in seconds.items():
        took, more = given if isinstance(given, tuple) else (given, {})
        transport = name.replace("__", ".")
        system, client, function = transport.split(".")
        operation, frame, *_ = function.split("_")
        about = {"system": system, "client": client, "operation": operation, "frame": frame, "origin": Origin.BEYOND}
        found += [row(transport, **{"seconds": took, **about, "pass": number, **more}) for number in (1, 2, 3)]
    return found


def cells(seconds, defaults=(USUAL,)):
    """The cells of the one direction of made-up runs, with ordinary spaces for non-breaking ones."""
    rows = made_up(**{name.replace(".", "__"): given for name, given in seconds.items()})
    wanted = replace(suite_files.load(ROOT / "suites", readme.SUITE).answers, defaults=list(defaults))
    (one,) = answers(wanted, summarise(rows, ()))
    return tuple(cell.replace(JOINED, " ") for cell in readme.row(one))


def test_what_a_suite_calls_beyond_pypi_is_what_its_packages_say():
    wanted = suite_files.load(ROOT / "suites", readme.SUITE).answers
    moving = [one for one in catalogue().values() if one.moves_a_frame and one.system in ("postgres", "clickhouse")]
    said = {one.id for one in moving if any(fnmatchcase(one.id, pattern) for pattern in wanted.beyond_pypi)}
    assert said == {one.id for one in moving if not packages.from_pypi(one)}


@pytest.fixture
def screen(monkeypatch):
    """The block of README of a made-up reference run."""
    suite, run, _ = reference.of(readme.SUITE)

    def made(rows):
        facts = run.environment | {"together": [{"run_id": name} for name in dict.fromkeys(row.run_id for row in rows)]}
        found = replace(run, environment=facts, every=rows)
        of = reference.of
        summaries = summarise(rows, ())
        monkeypatch.setattr(
            reference, "of", lambda name: (suite, found, summaries) if name == readme.SUITE else of(name)
        )
        lines = block().replace(JOINED, " ").splitlines()
        return [line for line in lines if line.startswith("| p") or line.startswith("| C")], " ".join(lines)

    return made


PSYCOPG2 = "postgres.sqlalchemy_psycopg2.write_polars_write_database"
INTO_CLICKHOUSE = "clickhouse.clickhouse_connect.write_polars_df_arrow"
HTTP = "clickhouse.http_client.write_polars_tuned"


def of_two_databases():
    took = {TUNED: 0.1, PGPQ: 0.2, PSYCOPG2: 2.0, HTTP: 0.3, INTO_CLICKHOUSE: 0.9}
    return made_up(**{name.replace(".", "__"): given for name, given in took.items()})


def test_the_table_is_of_writes_into_a_table_that_has_rows_if_the_run_has_them(screen):
    empty = of_two_databases()
    rows, said = screen(empty)
    assert [line.split(" | ")[0] for line in rows] == ["| polars to Postgres", "| polars to ClickHouse"]
    assert "Writes go into an empty table." in said
    more = {"experiment": "existing", "parameters": {"rows": "1000", "rows_before": "5000"}}
    there = [replace(one, **more, seconds=3 * one.seconds) for one in empty if one.system == "postgres"]
    rows, said = screen([*empty, *there])
    assert [line.split(" | ")[0] for line in rows] == [
        "| polars to Postgres, table with rows",
        "| polars to ClickHouse",
    ]
    assert "0.300 s, **20×**" in rows[0]
    assert "Writes go into an empty table, or one with 5,000 rows if the row says so." in said
    assert "Median of 3 calls, the call alone, in one run of the lab." in said


def test_a_factor_of_several_runs_is_their_range(screen):
    first = of_two_databases()
    slow = {TUNED: 1.2, PSYCOPG2: 1.1, HTTP: 1.1}
    second = [replace(one, run_id="another", seconds=one.seconds * slow.get(one.transport, 1.0)) for one in first]
    rows, said = screen([*first, *second])
    assert "| `write_database` 2.10 s |" in rows[0]
    assert "`tuned`](docs/catalogue/postgres-psycopg.md#write_polars_tuned) 0.110 s, **18× to 20×**" in rows[0]
    assert "0.200 s, **10× to 11×**" in rows[0]
    assert "0.315 s, **2.7× to 3.0×**" in rows[1]
    assert said.startswith("What most code does is 2.7× to 20× slower")
    assert "in 2 runs of the lab, hours apart; factors have their range." in said
    assert "run 20260101T000000Z-host and 1 more: [report]" in said


def test_what_most_code_does_is_said_to_be_faster_where_it_is(screen):
    converted = {"fidelity": "converted: key (object)"}
    took = {TUNED: 1.0, PGPQ: 1.25, PSYCOPG2: (0.5, converted), HTTP: 0.3, INTO_CLICKHOUSE: 0.9}
    rows, said = screen(made_up(**{name.replace(".", "__"): given for name, given in took.items()}))
    assert "1.25 s, **2.5× slower**" in rows[0]
    assert "1.00 s, **2.0× slower**" in rows[0]
    assert rows[1].count("0.900 s |") == 2
    assert said.startswith(
        "What most code does is 3.0× slower than the fastest call that kept every value in 1 of 2 directions; "
        "2.0× faster in polars to Postgres. Packages from PyPI alone make it 2.5× slower in polars to Postgres; "
        "no difference is shown in polars to ClickHouse. "
    )


def test_a_factor_that_the_runs_do_not_show_is_no_claim(screen):
    first = of_two_databases()
    quick = {PGPQ: 11.0, HTTP: 2.0}
    second = [replace(one, run_id="another", seconds=one.seconds * quick.get(one.transport, 1.0)) for one in first]
    rows, said = screen([*first, *second])
    assert "s, 0.91× to 10×, no difference shown" in rows[0]
    assert "value in 1 of 2 directions; no difference is shown in polars to ClickHouse. " in said
    assert "No difference is shown between most code and packages from PyPI alone. " in said


def test_the_fastest_from_pypi_is_the_fastest_exact_one_that_needs_neither_arrow_wire_nor_an_extension():
    converted = {"fidelity": "converted: key (object)"}
    name, default, from_pypi, fastest = cells(
        {TUNED: 0.1, EXTENSION: 0.2, ADBC: (0.25, converted), PGPQ: 0.5, USUAL: 2.0}
    )
    assert name == "polars to Postgres"
    assert default == "`write_database` 2.00 s"
    page = "docs/catalogue/postgres-pgpq.md#write_polars_copy_binary"
    beside = "[adbc `ingest`](docs/catalogue/postgres-adbc.md#write_polars_ingest) 0.250 s, converted, **8.0×**"
    assert from_pypi == f"[pgpq `copy_binary`]({page}) 0.500 s, **4.0×**; {beside}"
    assert fastest == "[psycopg `tuned`](docs/catalogue/postgres-psycopg.md#write_polars_tuned) 0.100 s, **20×**"


def test_what_converts_is_named_only_where_it_is_faster_than_the_exact_one():
    converted = {"fidelity": "converted: key (object)"}
    *_, from_pypi, fastest = cells({TUNED: 0.1, ADBC: (0.05, converted), PGPQ: 0.5, USUAL: 2.0})
    assert "`tuned`" in fastest
    assert from_pypi.endswith("0.0500 s, converted, **40×**")
    assert fastest.endswith("0.0500 s, converted, **40×**")
    *_, from_pypi, fastest = cells({TUNED: 0.1, ADBC: (0.6, converted), PGPQ: 0.5, USUAL: 2.0})
    assert "converted" not in from_pypi + fastest


def test_without_an_exact_one_from_pypi_the_fastest_that_converts_is_named_as_such():
    converted = {"fidelity": "converted: key (object)"}
    _, default, from_pypi, _ = cells({TUNED: 0.1, ADBC: (0.25, converted), USUAL: (2.0, converted)})
    assert default == "`write_database` 2.00 s, converted"
    assert from_pypi.startswith("none kept every type; [adbc `ingest`](")
    assert from_pypi.endswith(" 0.250 s, converted, **8.0×**")


def test_where_none_from_pypi_ran_the_cell_says_so():
    failed = {"status": Status.ERROR}
    _, default, from_pypi, fastest = cells({TUNED: 0.1, PGPQ: (None, failed), USUAL: (None, failed)})
    assert default == "`write_database` error"
    assert from_pypi == readme.NONE_EXACT
    assert fastest.endswith(" 0.100 s")


@pytest.mark.parametrize(
    ("transport", "call"),
    [
        ("clickhouse.clickhouse_connect.write_pandas_df", "`insert_df`"),
        ("clickhouse.clickhousedb.read_polars_database", "`read_database`"),
        (TO_SQL, "`to_sql`"),
        (PGPQ, "`copy_binary`"),  # which its summary does not spell: the end of its name
    ],
)
def test_what_most_code_does_is_named_as_it_is_called(transport, call):
    (case,) = summarise(made_up(**{transport.replace(".", "__"): 1.0}), ())
    assert readme.call(case) == call


def of_sizes(few, many, *others):
    """The sentence about runs at several sizes: the first transport costs less a call, the second less a row."""
    sizes = (1, 100, 1_000)
    rows = runs(few, line(0.01, 1e-4, sizes)) + runs(many, line(0.05, 1e-6, sizes))
    for one, other in others:
        rows += runs(one, line(0.01, 1e-4, sizes)) + runs(other, line(0.02, 1e-6, sizes))
    suite, summaries = suite_files.load(ROOT / "suites", "crossings"), summarise(rows, ())
    return readme.few_rows(curves(suite, summaries))


def test_it_says_below_how_many_rows_clients_from_pypi_win():
    report = "(results/reference/crossings/report.md)"
    said = f"With few rows, clients from PyPI win in {{}} of {{}} directions, below [{{}}]{report}."
    assert of_sizes(PGPQ, TUNED) == said.format(1, 1, "400 rows")  # 0.04 s are 400 of the rows that cost 99 µs more
    pandas = (PGPQ.replace("polars", "pandas"), TUNED.replace("polars", "pandas"))
    assert of_sizes(PGPQ, TUNED, pandas) == said.format(2, 2, "100 to 400 rows")
    assert of_sizes(PGPQ, TUNED, pandas[::-1]) == said.format(1, 2, "400 rows")


@pytest.mark.parametrize("pair", [(PGPQ, ADBC), (TUNED, PGPQ), (EXTENSION, TUNED)])
def test_where_no_client_from_pypi_gives_way_to_another_it_says_nothing(pair):
    assert of_sizes(*pair) == ""


def test_every_direction_has_a_row_of_the_reference_run():
    suite, _, summaries = reference.of(readme.SUITE)
    names = [text.split("|")[1].replace(JOINED, " ").strip() for text in block().splitlines() if text.startswith("|")]
    found = readme.shown(answers(suite.answers, summaries))
    assert names[2:] == [one.name for one in found]
    assert len({route(one) for one in found}) == len(found) == 8


def test_no_line_begins_with_a_mark_or_a_unit():
    assert (
        re.findall(r"(?<!\|) (?:[†‡]|s\b)", "\n".join(text for text in block().splitlines() if text[0:1] == "|")) == []
    )
    assert re.search(rf"{JOINED}†‡ [\d.]+{JOINED}s \|", block())


def test_each_link_of_a_row_leads_to_where_the_transport_is_listed():
    links = re.findall(r"\]\((docs/catalogue/[a-z0-9_-]+\.md)#(\w+)\)", block())
    assert len(links) == 16 + len(re.findall(r"(?:\*\*|shown|slower); \[", block()))
    for page, anchor in links:
        assert f"\n### {anchor}\n" in (ROOT / page).read_text(encoding="utf-8")


def test_it_says_where_the_figures_of_an_embedded_server_were_made():
    said = " ".join(block().split())
    assert "lab: embedded" in said
    assert "ClickHouse here is its engine in a Python process" in said


def test_a_database_that_came_after_the_reference_run_is_not_in_it(monkeypatch):
    as_it_is = readme.page()
    third = replace(next(iter(SYSTEMS.values())), name="third", embedded="Something of a third one.")
    monkeypatch.setattr(readme, "SYSTEMS", SYSTEMS | {"third": third})
    assert readme.page() == as_it_is


@pytest.mark.parametrize("text", ["no marks", f"{readme.BEGIN}{readme.END}{readme.BEGIN}{readme.END}"])
def test_a_readme_without_its_two_marks_is_refused(text, tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text(text)
    monkeypatch.setattr(readme, "ROOT", tmp_path)
    with pytest.raises(LabError, match="must have the lines <!-- reference:begin --> and"):
        readme.page()
