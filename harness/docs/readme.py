"""The tables of README, between its two marks, from the reference run."""

from dataclasses import replace

from harness.docs import reference
from harness.report import markdown
from harness.settings import ROOT


def page() -> str:
    """Return README.md with the part between its two marks made again."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, rest = text.split("<!-- reference:begin -->\n")
    _, after = rest.split("<!-- reference:end -->\n")
    suite, run, every = reference.of("matrix")
    main = [case for case in every if case.experiment == "matrix" and case.operation in ("write", "read")]
    summaries = [replace(case, details={}) for case in main if case.system != "machine"]
    tables = (
        f"{markdown.conditions(run.environment)}\n\n{markdown.tables(summaries, best=8)}\n"
        f"Published figures: {suite.citation}; {suite.conditions}.\n"
    )
    return f"{before}<!-- reference:begin -->\n{tables}<!-- reference:end -->\n{after}"
