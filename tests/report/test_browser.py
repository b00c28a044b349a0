"""The page in a real browser (Chromium, headless, offline), as wide as on a desk and on a telephone.

Every check is a function, and every check is shown to fail on a page that is broken in just that way.
"""

import os
import shutil
from contextlib import contextmanager
from dataclasses import replace

import pytest
from playwright import sync_api as playwright

from harness import report
from harness.settings import ROOT
from tests.report.browser_checks import (
    CHECKS,
    Seen,
    a_picture_can_be_skipped,
    a_word_filters_the_rows,
    asks_nobody,
    fits_the_window,
    hover_shows_the_value,
    in_the_dark,
    in_the_light,
    keys_begin_at_the_first_mark,
    keys_walk_through_the_marks,
    no_letter_of_a_picture_is_cut_off,
    nothing_sticks_out,
    pictures_fit_and_can_be_read,
    says_nothing,
    sorts_by_click,
    sorts_by_key,
    tables_are_complete,
    what_skips_shows_nothing_without_focus,
)
from tests.report.cases import environment, run_folder, suite
from tests.report.whole_run import ENDLESS, FIGURES, PICTURES, ROWS

pytestmark = pytest.mark.long

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTHS = (1280, 390)
NO_BROWSER = (
    "no browser: install chromium (Debian: apt-get install chromium), or Playwright's own: "
    ".venv/bin/playwright install --with-deps chromium"
)


@pytest.fixture(scope="module")
def browser():
    """A real Chromium: the system's, else Playwright's own. Without one a failure in CI, elsewhere skipped."""
    with playwright.sync_playwright() as tool:
        try:
            running = tool.chromium.launch(executable_path=chromium(), args=list(ARGUMENTS))
        except playwright.Error as error:
            if "Executable doesn't exist" not in str(error):
                raise
            pytest.fail(NO_BROWSER) if os.environ.get("CI") else pytest.skip(NO_BROWSER)
        yield running
        running.close()


def chromium():
    """The path of the system's browser, or none: Playwright then takes its own."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """report.html of a run with everything in it: long and endless names, markup, failures, every form of picture."""
    servers = {"postgres": {"version": "18.4", "settings": {"search_path": ENDLESS}}}
    facts = environment(servers=servers, packages={f"package-{number}": "1.0" for number in range(50)})
    folder = run_folder(tmp_path_factory.mktemp("run"), ROWS, facts)
    report.write(folder, replace(suite(*FIGURES, pictures=PICTURES), title=f"An example of {ENDLESS}"))
    return folder / "report.html"


@contextmanager
def opened(browser, path, width=1280, **options):
    """Open a page without a network and yield it with its log."""
    context = browser.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
    page, seen = context.new_page(), Seen()
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(path.as_uri())
    try:
        yield page, seen
    finally:
        context.close()


def broken(path, folder, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    copy = folder / "broken.html"
    copy.write_text(text.replace(old, new), encoding="utf-8")
    return copy


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_as_it_must_be(width, browser, page_file, tmp_path):
    with opened(browser, page_file, width) as (page, seen):
        for check in CHECKS:
            check(page, seen)
        for check in (says_nothing, asks_nobody):  # still
            check(page, seen)


def test_it_is_complete_without_scripts(browser, page_file):
    with opened(browser, page_file, java_script_enabled=False) as (page, seen):
        tables_are_complete(page, seen)
        fits_the_window(page, seen)


def test_a_printed_page_has_everything_on_paper(browser, page_file, tmp_path):
    with opened(browser, page_file) as (page, _):
        page.emulate_media(media="print")
        assert page.locator("nav").is_hidden()
        assert page.evaluate("getComputedStyle(document.querySelector('.scroll')).overflowX") == "visible"
        paper = page.pdf(prefer_css_page_size=True)
        assert page.evaluate("[...document.querySelectorAll('details')].every((details) => details.open)")
    assert paper.startswith(b"%PDF")


POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
END = "</main>"
BROKEN = {
    "a message": (says_nothing, END, "<script>console.error('no')</script></main>"),
    "an error": (says_nothing, END, "<script>nothing.there();</script></main>"),
    "an image from elsewhere, which the page's own policy forbids": (
        says_nothing,
        END,
        "<img src='https://a.invalid/'></main>",
    ),
    "an image from elsewhere": (asks_nobody, POLICY, 'img-src *"><img src="https://a.invalid/x.png'),
    "a wide element": (fits_the_window, END, "<div style='width: 3000px'>wide</div></main>"),
    "an element beyond the edge of a page that hides it": (
        nothing_sticks_out,
        END,
        "<style>html, body { overflow-x: hidden; }</style><div style='width: 1500px'>x</div></main>",
    ),
    "a word wider than its box": (
        nothing_sticks_out,
        END,
        "<p style='width: 5rem; overflow: hidden; overflow-wrap: normal'>WiderThanItsBoxByFar</p></main>",
    ),
    "a picture whose labels are too large": (
        no_letter_of_a_picture_is_cut_off,
        END,
        "<style>svg text { font-size: 30px !important; }</style></main>",
    ),
    "a head without a button": (sorts_by_click, "head.append(button);", ""),
    "a sort by letters": (sorts_by_click, 'typeof a === "number" ? a - b', "false ? 0"),
    "a sort that forgets what is missing": (sorts_by_click, 'return (a === "") -', 'return -(a === "") +'),
    "a button that no key reaches": (
        sorts_by_key,
        'document.createElement("button")',
        'document.createElement("span")',
    ),
    "a table that only a script fills": (tables_are_complete, END, "<style>tbody { display: none; }</style></main>"),
    "a text that never shows": (hover_shows_the_value, "tip.hidden = false;", ""),
    "a text that stays": (hover_shows_the_value, 'addEventListener("pointerleave", hideTip)', "id"),
    "marks that no key reaches": (keys_walk_through_the_marks, "stops[next].focus();", ""),
    "keys that begin where Vega did": (
        keys_begin_at_the_first_mark,
        "middle(one) - middle(other)",
        "middle(other) - middle(one)",
    ),
    "a picture without a way past it": (
        a_picture_can_be_skipped,
        'class="skip" href="#caption',
        'class="x" href="#caption',
    ),
    "a picture as wide as a desk": (pictures_fit_and_can_be_read, ".card svg {", ".card svg { min-width: 60rem;"),
    "letters for eagles": (pictures_fit_and_can_be_read, ".card svg {", ".card svg { max-width: 15rem !important;"),
    "a way past a picture that covers it": (
        what_skips_shows_nothing_without_focus,
        ".skip:not(:focus)",
        ".skip:not(a)",
    ),
    "a filter that hides nothing": (a_word_filters_the_rows, "row.hidden = !words", "row.title = !words"),
    "grey on white": (in_the_light, "--quiet: #59636e", "--quiet: #aaaaaa"),
    "no dark scheme": (in_the_dark, "@media (prefers-color-scheme: dark)", "@media (min-width: 90000px)"),
    "pictures that stay white": (in_the_dark, ".card { ", ".card { background: #ffffff; "),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_check_for_it_fails_on_a_page_with(fault, browser, page_file, tmp_path):
    check, old, new = BROKEN[fault]
    copy = broken(page_file, tmp_path, old, new)
    with opened(browser, copy, java_script_enabled=check is not tables_are_complete) as (page, seen):
        page.wait_for_timeout(50)  # a request that fails is reported a little later
        with pytest.raises((AssertionError, playwright.Error)):
            check(page, seen)


SITE = ROOT / "site"


@pytest.mark.skipif(not SITE.is_dir(), reason="no site of the docs: make docs")
@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("install", "docs/get-started.html"),
        ("docker", "docs/how-to/run-a-suite.html"),
        ("fastest polars to postgres", "docs/how-to/choose-by-hand.html"),
    ],
)
def test_the_search_of_the_site_finds_first(words, first, browser):
    with opened(browser, SITE / "index.html") as (page, _):
        page.get_by_role("textbox", name="Search").fill(words)
        link = page.locator(".md-search-result__link").first.get_attribute("href", timeout=120_000)
    assert link.partition("?")[0] == (SITE / first).as_uri()
