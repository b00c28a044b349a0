"""The fidelity matrix: every pair has its mark, and each difference from the declaration is listed."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from harness import registry
from harness.model import Fate, Finding, LabError
from harness.report import fidelity

ONE = replace(registry.one("postgres.psycopg.read_polars_rows"), lossy={"nan": "changed", "tab": "refused"})
TWO = replace(registry.one("clickhouse.httpx.read_polars_parquet"), lossy={})


def finding(entry, kind, fate, detail=""):
    return Finding(entry, kind, fate, entry.lossy.get(kind, ""), detail)


AS_DECLARED = [
    finding(ONE, "nulls", Fate.CONVERTED, "int_value (Int64)"),
    finding(ONE, "nan", Fate.CHANGED, "expected nan, found None"),
    finding(ONE, "tab", Fate.REFUSED, "no tabs"),
    finding(TWO, "nulls", Fate.EXACT),
    finding(TWO, "nan", Fate.UNAVAILABLE, "no server"),
]
BETTER = [finding(ONE, "nan", Fate.EXACT), finding(ONE, "tab", Fate.REFUSED)]
WORSE = [finding(TWO, "nulls", Fate.CHANGED, "expected None, found 0"), finding(TWO, "nan", Fate.HANGS)]
FORBIDDEN = Finding(TWO, "nul_character", Fate.REFUSED, "refused")


def test_the_grid_has_a_mark_for_each_pair_and_none_where_there_is_no_pair():
    *head, one, two, blank = fidelity.grid(AS_DECLARED, 200)[:8]
    left = max(len(ONE.id), len(TWO.id)) + 1
    assert [line[left:] for line in head] == ["n", "u", "l n t", "l a a", "s n b"]
    assert one == f"{ONE.id:<{left}}c X r"
    assert two == f"{TWO.id:<{left}}· -"
    assert blank == ""


def test_a_grid_that_is_too_wide_is_broken_between_kinds():
    lines = fidelity.grid(AS_DECLARED, len(TWO.id) + 5)
    assert sum(line.startswith(ONE.id) for line in lines) == 2
    assert all(len(line) <= len(TWO.id) + 5 for line in lines if line.startswith((ONE.id, TWO.id)))


def test_what_is_not_as_declared_is_marked_in_the_grid():
    assert f"{ONE.id} ·!r" in fidelity.grid(BETTER, 200)


def test_a_declared_loss_that_no_longer_happens_and_a_loss_that_is_not_declared_are_said():
    assert fidelity.deviations([*BETTER, *WORSE]) == [
        f"{ONE.id}: nan: declared changed, found exact",
        f"{TWO.id}: nulls: declared exact or converted, found changed: expected None, found 0",
        f"{TWO.id}: nan: declared exact or converted, found hangs",
    ]


def test_the_files_have_every_pair_and_every_transport(tmp_path: Path):
    csv_path, md_path, page = fidelity.write(tmp_path / "new", [*AS_DECLARED, *WORSE], "lab: none")
    with csv_path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["outcome"] for row in rows] == [
        "converted",
        "changed",
        "refused",
        "exact",
        "unavailable",
        "changed",
        "hangs",
    ]
    assert rows[1] == dict(
        zip(fidelity.COLUMNS, (ONE.id, "nan", "changed", "changed", "expected nan, found None"), strict=True)
    )
    assert page.read_text(encoding="utf-8") == fidelity.page([*AS_DECLARED, *WORSE], "lab: none")
    text = md_path.read_text(encoding="utf-8")
    assert f"| `{ONE.id}` | 1 converted | changed: nan; refused: tab |" in text
    assert "changed: nulls!; hangs: nan!" in text
    assert "declared exact or converted, found hangs" in text
    assert "All as declared." in fidelity.markdown(AS_DECLARED, "lab: none")


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="cannot write"):
        fidelity.write(tmp_path / "file", AS_DECLARED, "")


def test_the_page_has_a_cell_for_each_pair_with_its_outcome_and_detail():
    page = fidelity.page([*AS_DECLARED, replace(FORBIDDEN, detail="<script>\"'")], "conditions of <this> run")
    assert page.count("<tr>") == 3  # the head, two transports
    assert '<td class="converted" title="nulls: converted: int_value (Int64)">c</td>' in page
    assert '<td class="refused" title="nul_character: refused: &lt;script&gt;&#34;&#39;">r</td>' in page
    assert page.count("<td></td>") == 2  # pairs that were not tried
    assert "conditions of &lt;this&gt; run" in page
    assert "All as declared." in page


def test_the_page_says_what_is_not_as_declared():
    page = fidelity.page(WORSE, "conditions")
    assert '<td class="hangs" title="nan: hangs">H!</td>' in page
    assert "<li>" in page.split('id="declared"')[1].split("</section>")[0]
    assert "All as declared." not in page
