"""Changes to MkDocs for this repository: a site of its files in their places, and diagrams without a script.

All paths of the site are those of the repository, so that a link leads to the same page in both.
"""

import html
import subprocess
from itertools import groupby
from pathlib import Path

import mermaidx
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
SHOWN = ("*.md", "LICENSE", "docs", "results/reference", "results/fidelity", "website/*.[cj]s*")
BOOST = {  # of the first that a path begins with: guides before the catalogue, and that before all else
    "README.md": 4,
    "docs/get-started.md": 8,
    "docs/how-to/": 6,
    "docs/findings.md": 4,
    "docs/catalogue": 2,
    "docs/upstream/": 0.5,
    "CHANGELOG.md": 0.5,
}
LONG = "results/"  # figures by the thousand: readers do not search for them, and they would be most of the index


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put every client's page below the catalogue, and have diagrams drawn while the site is built."""
    fence = {"name": "mermaid", "class": "diagram", "format": _diagram}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    pages = sorted(path.stem for path in ROOT.glob("docs/catalogue/*.md"))
    for system, names in groupby(pages, key=lambda name: name.partition("-")[0]):
        below = [{name.partition("-")[2]: f"docs/catalogue/{name}.md"} for name in names]
        _catalogue(config).append({system: below})
    return config


def _catalogue(config: MkDocsConfig) -> list:
    return next(part["Catalogue"] for part in config.nav if "Catalogue" in part)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Return the files of the repository that are shown, next to those of the theme."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *SHOWN],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    sources = {path: ROOT / path for path in sorted(set(listed.stdout.split()))}
    # `report.html` is the name of the page that report.md becomes
    sources |= {
        f"{one.parent.relative_to(ROOT)}/{INTERACTIVE}": one for one in ROOT.glob("results/reference/*/report.html")
    }
    own = [File.generated(config, path, abs_src_path=str(source)) for path, source in sources.items()]
    return Files([*(file for file in files if file.src_dir != config.docs_dir), *own])


INTERACTIVE = "interactive.html"


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let the search find guides first and figures never; give pages that are wide, or alone, all the room."""
    path = page.file.src_uri
    if path.startswith(LONG):
        page.meta |= {"search": {"exclude": True}, "hide": ["navigation", "toc"]}
    elif boost := next((number for start, number in BOOST.items() if path.startswith(start)), None):
        page.meta["search"] = {"boost": boost}
    if path.startswith("results/reference/") and (ROOT / path).with_suffix(".html").is_file():
        title, _, rest = markdown.partition("\n")
        says = "has every figure, sorts and filters its tables, and its marks say what they are"
        markdown = f"{title}\n\n[The interactive report]({INTERACTIVE}) {says}.\n{rest}"
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]
    return markdown


def _diagram(source: str, *_: object, **__: object) -> str:
    """Return a diagram as SVG: mermaid's own JavaScript draws it now, in an engine inside Python."""
    drawn = mermaidx.render(source).svg()
    return f'<div class="diagram" role="img" aria-label="{html.escape(source.split()[0])}">{drawn}</div>'
