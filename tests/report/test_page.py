"""report.html: complete and in order without a script or a network, and it shows every string as text."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from harness.model import Status
from harness.report.answers import leaders
from harness.report.charts import chart
from harness.report.markdown import facts
from harness.report.page import _breakable, _whole_arrows, page
from harness.report.rankings import every_case
from harness.report.sections import headline, sections
from harness.report.summary import summarise
from harness.report.table import Table
from harness.suites.suite import Picture, PublishedFigure
from tests.report.cases import environment, row, scan, suite

TIMES = Picture("times", "Time by size", "lines", y="seconds", x="bytes", where={"system": ["parquet"]})
RATES = Picture("rates", "Rates", "bars", y="rows_per_s", where={"system": ["postgres"]})
VOID = {"meta", "link", "br", "wbr", "input"}
NASTY = "<script>alert('&amp;')</script><img src=x onerror=alert(1)> & \"quoted\" </svg></table></style>"
ROWS = [
    *(scan("quick", files, seconds=files * part, peak_rss_bytes=4_000_000) for files in (1, 2) for part in (1.0, 1.5)),
    *(scan("slow", files, seconds=files * 1.2, published_row="The slow way") for files in (1, 2)),
    scan("dead", 2, Status.KILLED, error="by signal 9"),
    row("postgres.x.write", seconds=0.5, pinned="async_insert=0", fidelity="converted: key (Object)"),
    row("postgres.y.write", Status.UNAVAILABLE, error="no pg_parquet here"),
]


class Elements(HTMLParser):
    """Every element of a page as (tag, attributes), every string with the tags around it, and tags out of balance."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.strings, self.unbalanced, self._open = [], [], [], []
        self.feed(text)
        self.unbalanced += self._open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID and (not self._open or self._open.pop() != tag):
            self.unbalanced.append(tag)

    def handle_data(self, text):
        self.strings.append((tuple(self._open), text))

    def count(self, tag, **attributes):
        return sum(name == tag and attributes.items() <= known.items() for name, known in self.found)

    def text(self):
        return re.sub(
            r"\s+", " ", "".join(text for open_, text in self.strings if not {"script", "style"} & set(open_))
        )


def made(tmp_path, rows=ROWS, *published, pictures=(TIMES, RATES), facts=None):
    about = suite(*published, pictures=pictures)
    drawn = [one for picture in pictures if (one := chart(picture, rows, published, tmp_path))]
    summaries = summarise(rows, published)
    files = ("runs.csv", "summary.csv")
    known = environment() if facts is None else facts
    return page(about, known, rows, sections(about, known, rows, summaries, charts=drawn), files)


@pytest.mark.long
def test_a_page_is_well_formed_with_its_landmarks_and_headings_in_order(tmp_path):
    html = Elements(made(tmp_path))
    assert html.unbalanced == []
    assert [html.count(tag) for tag in ("html", "header", "nav", "main", "footer", "h1")] == [1] * 6
    levels = [int(tag[1]) for tag, _ in html.found if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert html.count("html", lang="en") == 1
    ids = [attributes["id"] for _, attributes in html.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = {a["href"][1:] for tag, a in html.found if tag == "a" and a["href"].startswith("#")}
    targets |= {a["aria-labelledby"] for _, a in html.found if "aria-labelledby" in a}
    assert targets <= set(ids)


def test_nothing_is_asked_of_any_network(tmp_path):
    text = made(tmp_path)
    html = Elements(text)
    urls = [a[key] for _, a in html.found for key in ("src", "href", "xlink:href", "srcset", "action") if key in a]
    assert [url for url in urls if not url.startswith("#")] == ["data:,", "runs.csv", "summary.csv"]
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    policy = next(a["content"] for tag, a in html.found if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ")


def test_markup_in_any_text_is_shown_as_text(tmp_path):
    rows = [
        scan("quick", 1, seconds=1.0, published_row=NASTY, payload=NASTY, pinned=NASTY, fidelity=f"{NASTY}: {NASTY}"),
        scan("bad", 1, Status.ERROR, published_row=f"bad {NASTY}", error=NASTY, parameters=f"files={NASTY}"),
    ]
    about = replace(suite(pictures=[TIMES]), title=NASTY, citation=NASTY, conditions=NASTY)
    known = environment(python=NASTY, servers={NASTY: {"version": NASTY, "settings": {NASTY: NASTY}}})
    known["data"] = [{"name": NASTY}]
    known["measurement"] = {NASTY: NASTY}
    one = chart(replace(TIMES, title=NASTY), rows, (), tmp_path)
    found = sections(about, known, rows, summarise(rows, ()), charts=[one])
    text = page(about, known, rows, found, ["runs.csv"])
    html = Elements(text)
    assert html.unbalanced == []
    assert html.count("script") == html.count("style") == 1
    assert html.count("img") == 0
    assert html.text().count("<script>alert('&amp;')</script>") > 15


def test_a_name_in_backticks_is_code_and_nothing_else_is():
    assert str(_whole_arrows("call `to_sql(x)`, not `<b>` -> `")) == (
        'call <code>to_sql(x)</code>, not `&lt;b&gt;` <span class="whole">-&gt;</span> `'
    )


def test_a_line_breaks_within_an_identifier_but_not_within_a_number():
    assert _breakable("postgres.x.read_all: 0.00349 s") == "postgres.<wbr>x.<wbr>read_<wbr>all: 0.00349 s"


def test_the_headline_counts_cases_runs_and_endings():
    rows = [*ROWS, scan("dead", 1, Status.ERROR)]
    sentences = headline(environment(), rows, summarise(rows, ()))
    assert sentences[0] == "8 cases in 3 passes of size default: 10 runs (7 ok, 1 killed, 1 unavailable, 1 error)."
    assert sentences[1].startswith("Only ok runs have figures")
    assert sentences[2] == "This run is not complete: 8 cases of those below have fewer than 3 runs."


def test_a_complete_run_of_ok_runs_needs_no_more_words():
    rows = [row("a", seconds=1.0)] * 3
    found = headline(environment(), rows, summarise(rows, ()))
    assert found[0] == "1 case in 3 passes of size default: 3 runs (3 ok)."
    assert [line.partition(":")[0] for line in found[1:]] == ["The machine"]


def test_the_fastest_and_the_leanest_are_those_of_the_largest_point():
    by_name = {line[0]: list(line[1:]) for line in leaders(summarise(ROWS, ())).rows}
    assert by_name["Many files: Parquet scan"] == [
        "2 files, 200 MB",
        "The slow way",
        "2.40",
        "parquet.quick.scan",
        "4%, too few runs to tell",
        "parquet.quick.scan",
        "4.00",
    ]
    assert by_name["Matrix: Postgres write"][:3] == ["1,000 rows", "postgres.x.write", "0.500"]


def test_neither_a_control_nor_a_bound_is_the_fastest_and_three_runs_say_whether_the_first_differs():
    rows = [row("postgres.x.write_control", seconds=0.1, origin="control"), row("bound", seconds=0.1, origin="limit")]
    rows += [row(name, seconds=base + part) for name, base in (("a", 1.0), ("b", 1.1)) for part in (0.0, 0.05, 0.2)]
    (line,) = leaders(summarise(rows, ())).rows
    assert list(line[2:6]) == ["a", "1.05", "b", "10%, no difference shown"]
    (line,) = leaders(summarise([*rows[:5], *[row("c", seconds=2.0)] * 3], ())).rows
    assert list(line[4:6]) == ["c", "90%"]


def test_there_is_no_fastest_where_none_is_ok():
    found = leaders(summarise([row("a", Status.ERROR)], ()))
    assert list(found.rows[0]) == ["Postgres write", "1,000 rows", "none is ok", "", "", "", "", ""]
    assert leaders([]) is None


def test_every_case_is_in_a_table_with_its_figures_or_its_status():
    parquet, postgres = every_case(summarise(ROWS, ()))
    assert parquet.head[:5] == ("#", "transport", "files", "data", "runs")
    assert parquet.head[-1] == "values"
    lines = [dict(zip(parquet.head, line, strict=True)) for line in parquet.rows]
    quick = next(line for line in lines if line["transport"] == "parquet.quick.scan" and line["files"] == "1")
    assert (quick["runs"], quick["median s"], quick["min s"], quick["max s"], quick["std s"]) == (
        "2", "1.25", "1.00", "1.50", "0.250",
    )  # fmt: skip
    dead = next(line for line in lines if line["transport"] == "parquet.dead.scan")
    assert {head: text for head, text in dead.items() if text} == {
        "transport": "parquet.dead.scan", "files": "2", "data": "200 MB", "runs": "0", "values": "killed",
    }  # fmt: skip
    assert parquet.notes == ("the same in every case: scale 2",)
    assert len(parquet.rows) + len(postgres.rows) == 7
    assert [postgres.rows[place][1] for place in postgres.quiet] == ["postgres.y.write"]


def test_the_number_a_column_is_sorted_by_is_not_that_of_its_rounded_text():
    rows = [row("a", seconds=1.00001), row("b", seconds=1.00002)]
    (found,) = every_case(summarise(rows, ()))
    column = found.head.index("median s")
    assert [(line[column], found.number(place, column)) for place, line in enumerate(found.rows)] == [
        ("1.00", 1.00001),
        ("1.00", 1.00002),
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,309,546", 1_309_546),
        ("0.0123*", 0.0123),
        ("7.5 ×1.0", 7.5),
        ("1.4e+06", 1.4e6),
        ("-3", -3),
        ("", None),
        ("killed", None),
        (",", None),
        ("×3", 3),
    ],
)
def test_a_cell_is_sorted_by_the_number_it_begins_with(text, number):
    found = Table("t", ("way", "s"), ((text, text),))
    assert [found.number(0, column) for column in (0, 1)] == [None, number]


def test_what_is_set_off_is_so_in_the_page_and_its_tables_have_names(tmp_path):
    text = made(tmp_path)
    assert "<b>2.40</b>" in text
    for name in ("The fastest, and the lowest memory", "Runs that are not ok"):
        assert Elements(text).count("table", **{"aria-label": name}) == 1


def test_pictures_are_in_the_page_with_their_captions_and_what_was_not_drawn_is_named(tmp_path):
    nothing = Picture("nothing", "What nobody ran", "bars", y="rows_per_s", where={"system": ["nobody"]})
    text = made(tmp_path, pictures=(TIMES, nothing, RATES))
    html = Elements(text)
    assert html.count("svg") == html.count("figure") == html.count("figcaption") == 2
    assert html.count("svg", **{"aria-label": "Time by size"}) == 1
    assert "Not drawn, because no ok run fits them: What nobody ran." in text
    assert "Without a mark: parquet.dead.scan at 200 MB (killed)." in html.text()


def test_the_published_figures_and_their_source_are_in_the_page(tmp_path):
    text = made(tmp_path, ROWS, PublishedFigure("The slow way", "many_files", bytes=10**12, mean_seconds=60.0))
    html = Elements(text)
    assert "The published figures next to ours" in text
    assert 'A. Uthor, "The way", 2026-01-01' in html.text()
    assert "The published figures next to ours" not in made(tmp_path)


def test_the_conditions_say_where_it_ran_and_with_which_settings(tmp_path):
    known = environment(
        servers={"postgres": {"version": "18.4", "settings": {"shared_buffers": "16384"}}},
        packages={"polars": "2.1.0", "something": "1"},
        code={"commit": "abc", "modified": True},
        load_average_at_start=[0.5, 0.25, 0.1],
        data=[{"name": "lineitem", "rows": 5, "bytes": 7_000_000, "seed": 3, "content_hash": "0123456789abcdef"}],
        measurement={"page_cache": "warm"},
    )
    said = {
        "Server postgres": "18.4",
        "Settings of postgres other than its defaults": "shared_buffers=16384",
        "Machine": "2 cores of A CPU, 8 GiB, Linux 6.1",
        "Libraries": "polars 2.1.0",
        "Code": "commit abc with changes",
        "Data": "lineitem, 5 rows, 7.00 MB, seed 3, content 0123456789ab",
        "Page cache": "warm",
        "Load average at the start": "0.5, 0.25, 0.1",
    }
    assert dict(facts(known)) | said == dict(facts(known))
    html = Elements(made(tmp_path, facts=known))
    assert "async_insert=0" in html.text()
    assert '"something": "1"' in html.text()  # the whole environment


def test_many_files_of_data_are_counted():
    known = environment(data=[{"name": "lineitem", "rows": 5, "bytes": 10**9}] * 40)
    assert dict(facts(known))["Data"].startswith("lineitem: 40 files, 40.0 GB in all")


def test_a_page_of_the_least_facts_says_what_is_unknown_and_leaves_out_the_rest():
    found = dict(facts(environment()))
    assert found["Code"] == "commit unknown"
    race = {"suite": "matrix", "size": "race", "passes": 1}
    assert (
        dict(facts(environment(plan=race)))["Suite"] == "matrix, a race, which runs the fastest transports most often"
    )
    assert not {"Libraries", "Data", "Filesystem of the data"} & found.keys()


def test_a_run_without_a_row_has_a_page(tmp_path):
    html = Elements(made(tmp_path, []))
    assert html.unbalanced == []
    assert "0 cases in 3 passes of size default: 0 runs." in html.text()
    assert html.count("svg") == html.count("table") == 0


@pytest.mark.long
def test_a_large_run_stays_below_its_size(tmp_path):
    rows = [
        scan(
            f"engine{number}", files, seconds=1.0 + part, experiment=f"experiment_{part}", published_row=f"Way {number}"
        )
        for number in range(10)
        for files in range(1, 9)
        for part in range(4)
    ]
    pictures = tuple(
        replace(TIMES, name=f"{y}-{part}", where={"experiment": [f"experiment_{part}"]}, y=y)
        for part in range(4)
        for y in ("seconds", "cpu_seconds", "rows_per_s")
    )
    assert len(made(tmp_path, rows, pictures=pictures).encode()) < 1_500_000
