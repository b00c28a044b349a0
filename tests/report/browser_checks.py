"""The things that a user must find on the page of `whole_run`, asked of a real browser.

A check takes the page and its log (`Seen`), and raises AssertionError if the page is wrong.
"""

from dataclasses import dataclass, field

import pytest

from tests.report.whole_run import ROWS


@dataclass
class Seen:
    """The events of a page that a user does not see."""

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def open_all(page):
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")


def says_nothing(page, seen):
    assert seen.complaints == []


def asks_nobody(page, seen):
    assert seen.requests
    assert [url for url in seen.requests if not url.startswith(("file:", "data:"))] == []


def fits_the_window(page, seen):
    open_all(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


OUTSIDE = """() => {
  const bad = [];
  for (const element of document.body.querySelectorAll("*")) {
    if (element.closest(".skip, figure h3, [hidden], svg *, script")) continue;
    if (element.closest(".scroll") && !element.matches(".scroll")) continue;
    const box = element.getBoundingClientRect();
    if (box.width && (box.left < -1 || box.right > window.innerWidth + 1)) bad.push(element.outerHTML.slice(0, 90));
  }
  return bad;
}"""
OVERFLOWING = """() => [...document.body.querySelectorAll("*")]
  .filter((element) => !element.closest("svg, .skip, figure h3, script, style, [hidden]"))
  .filter((element) => element.clientWidth && element.scrollWidth > element.clientWidth + 1)
  .filter((element) => !["auto", "scroll"].includes(getComputedStyle(element).overflowX))
  .map((element) => element.outerHTML.slice(0, 90))"""


def nothing_sticks_out(page, seen):
    open_all(page)
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate(OVERFLOWING) == []


LETTERS_CUT_OFF = """() => [...document.querySelectorAll("figure svg text")].filter((text) => {
  const own = text.getBoundingClientRect(), all = text.closest("svg").getBoundingClientRect();
  return own.left < all.left - 1 || own.right > all.right + 1 || own.top < all.top - 1 || own.bottom > all.bottom + 1;
}).map((text) => text.textContent)"""


def no_letter_of_a_picture_is_cut_off(page, seen):
    assert page.locator("figure svg text").count() > 50
    assert page.evaluate(LETTERS_CUT_OFF) == []


def column(page, table, head):
    """The strings of a column of a table, from top to bottom."""
    heads = table.locator("th").all_inner_texts()
    assert head in heads
    place = heads.index(head)
    return [cell.split("\n")[0] for cell in table.locator(f"tbody td:nth-child({place + 1})").all_inner_texts()]


def number(text):
    assert text, "a figure that is missing stands among the others"
    return float(text.replace(",", ""))


def sorts_by(press):
    """A check of sorting by pressing a head in this way."""

    def check(page, seen):
        open_all(page)
        table = page.locator("section[aria-labelledby=cases] table").first
        head = table.locator("th", has_text="transport")
        before = column(page, table, "transport")
        press(head)
        assert head.get_attribute("aria-sort") == "ascending"
        names = column(page, table, "transport")
        assert names == sorted(before, key=lambda name: int(name.split("engine")[1].split(".")[0]))  # engine10 is last
        head = table.locator("th", has_text="median s")
        press(head)
        up = column(page, table, "median s")
        assert up[-1] == ""  # killed: no figure
        assert up[:-1] == sorted(up[:-1], key=number)
        press(head)
        assert head.get_attribute("aria-sort") == "descending"
        down = column(page, table, "median s")
        assert down == [*sorted(up[:-1], key=number, reverse=True), ""]
        assert table.locator("th[aria-sort]").count() == 1

    return check


def by_key(head):
    head.locator("button").focus(timeout=2_000)
    head.page.keyboard.press("Enter")


sorts_by_click, sorts_by_key = sorts_by(lambda head: head.locator("button").click(timeout=2_000)), sorts_by(by_key)


def tables_are_complete(page, seen):
    """Without scripts, the page shows every case, figure and reason, and needs no click."""
    open_all(page)
    assert page.locator("button").count() == 0
    names = {name for row in ROWS for name in (row.transport, row.published_row) if name}
    cells = page.locator("section[aria-labelledby=cases] td:visible").all_inner_texts()
    assert {name for name in names if not any(name in cell for cell in cells)} == set()
    failures = page.locator("section[aria-labelledby=not-ok] td:visible").all_inner_texts()
    assert {row.error for row in ROWS if row.error} <= set(failures)
    assert page.locator("figure svg .mark title").count() == page.locator("figure svg .mark").count() > 50


def hover_shows_the_value(page, seen):
    mark = page.locator("svg[aria-label=Rates] .mark").first
    mark.scroll_into_view_if_needed()
    mark.hover(position={"x": 10, "y": 10})  # its box is larger than the mark, by the width that its edge may have
    assert page.locator("#tip").is_visible()
    said = page.locator("#tip").inner_text()
    assert "median rate: 1 k rows/s (909 rows/s to 1.11 k rows/s, n = 3)" in said
    box = page.locator("#tip").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= page.viewport_size["width"]
    page.mouse.move(1, 1)
    assert page.locator("#tip").is_hidden()


def keys_walk_through_the_marks(page, seen):
    page.locator("svg[aria-label=Rates] .mark[tabindex='0']").focus()
    said = [page.locator("#tip").inner_text(timeout=2_000)]
    for _ in range(2):
        page.keyboard.press("ArrowRight")
        said.append(page.locator("#tip").inner_text())
    assert len(set(said)) == 3
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == said[-1]
    assert page.locator("svg[aria-label=Rates] .mark[tabindex='0']").count() == 1  # one stop for the Tab key
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def keys_begin_at_the_first_mark(page, seen):
    """The first bar of a picture is the top one, in any drawing order."""
    tops = """marks => marks.filter((mark) => !mark.hasAttribute("aria-hidden"))
      .map((mark) => mark.getBoundingClientRect()).map((box) => box.top + box.height / 2)"""
    every = page.locator("svg[aria-label=Rates] .mark").evaluate_all(tops)
    first = page.locator("svg[aria-label=Rates] .mark[tabindex='0']").evaluate_all(tops)
    assert first == pytest.approx([min(every)], abs=4)


def pictures_fit_and_can_be_read(page, seen):
    """No picture is wider than its card, and its smallest letters have 7 pixels, on a telephone too."""
    found = page.evaluate("""() => [...document.querySelectorAll(".card svg")].map((svg) => {
      const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      const letters = [...svg.querySelectorAll("text")].map((text) => parseFloat(getComputedStyle(text).fontSize));
      return [svg.closest(".card").clientWidth - svg.getBoundingClientRect().width, scale * Math.min(...letters)];
    })""")
    assert found
    assert min(room for room, _ in found) >= 0
    assert min(letters for _, letters in found) >= 7


def what_skips_shows_nothing_without_focus(page, seen):
    boxes = page.locator(".skip").evaluate_all("skips => skips.map((skip) => skip.getBoundingClientRect().width)")
    assert max(boxes) <= 1


def a_picture_can_be_skipped(page, seen):
    skips = page.locator("figure .skip")
    assert skips.count() == page.locator("figure").count() > 0
    skips.first.focus()
    assert skips.first.bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('figcaption')")


def a_word_filters_the_rows(page, seen):
    open_all(page)
    rows = page.locator("section[aria-labelledby=cases] tbody tr:visible")
    before = rows.count()
    page.locator("#filter").fill("ENGINE10 scan", timeout=2_000)
    assert 0 < rows.count() < before
    assert all("engine10" in text for text in rows.all_inner_texts())
    assert " of " in page.locator("#left").inner_text()
    page.locator("#filter").fill("")
    assert rows.count() == before


CONTRAST = """() => {
  const part = (value) => { value /= 255; return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4; };
  const light = (text) => {
    const [red, green, blue] = text.match(/[\\d.]+/g).map(Number).map(part);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if (!colour.includes(", 0)")) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  let least = 21;
  for (const element of document.querySelectorAll("h1, h2, p, a, td, th, th button, li, dt, dd, figcaption, summary")) {
    if (!element.getClientRects().length) continue;
    const one = light(getComputedStyle(element).color), other = light(ground(element));
    least = Math.min(least, (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05));
  }
  return { least, page: light(getComputedStyle(document.body).backgroundColor),
           card: light(ground(document.querySelector(".card"))) };
}"""


def can_be_read_in(scheme):
    """A check of one colour scheme: words have the contrast of WCAG 2.2 AA, pictures follow the page."""

    def check(page, seen):
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(CONTRAST)
        assert found["least"] >= 4.5
        assert found["card"] == found["page"]
        assert found["page"] < 0.05 if scheme == "dark" else found["page"] > 0.9

    return check


in_the_light, in_the_dark = can_be_read_in("light"), can_be_read_in("dark")
CHECKS = [
    says_nothing,
    asks_nobody,
    fits_the_window,
    nothing_sticks_out,
    no_letter_of_a_picture_is_cut_off,
    sorts_by_click,
    sorts_by_key,
    hover_shows_the_value,
    keys_begin_at_the_first_mark,
    keys_walk_through_the_marks,
    pictures_fit_and_can_be_read,
    what_skips_shows_nothing_without_focus,
    a_picture_can_be_skipped,
    a_word_filters_the_rows,
    in_the_light,
    in_the_dark,
]
