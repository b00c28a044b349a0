"""The words of the repository: pages written by hand, and docstrings, comments and messages of Python source."""

import ast
import io
import re
import tokenize
from functools import cache

from harness.settings import ROOT

parsed = cache(ast.parse)

# Pages that `lab docs` makes of code, and blocks that it writes into other pages: their words are those of the code.
_MADE = re.compile(r"docs/catalogue|docs/reference/(cli|columns|settings|runs|values)\.md")
_BLOCK = re.compile(
    r"<!-- (?:table of|benchmarks/|reference:begin).*?<!-- (?:end of table|end|reference:end) -->", re.S
)
_MARKED = re.compile(r"(?:^|\s)(?:##?|//[/!]?) (.*)")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def pages() -> dict[str, str]:
    """Return the pages written by hand, by path, without generated blocks."""
    paths = sorted(path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("arrow-wire/*.md")])
    named = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}
    return {path: _BLOCK.sub("", text) for path, text in named.items() if not _MADE.match(path)}


def docstrings(source: str) -> list[str]:
    found = (ast.get_docstring(node) for node in ast.walk(parsed(source)) if isinstance(node, _DOCUMENTED))
    return [text for text in found if text]


def comments(source: str) -> list[str]:
    """Return the comments of Python source; lines that follow each other are one."""
    found: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            words, line = token.string.lstrip("#: "), token.start[0]
            found[-1:] = [f"{found[-1]}\n{words}"] if found and line == last + 1 else [*found[-1:], words]
            last = line
    return found


def remarks(source: str) -> str:
    """Return the comments of a script, a Makefile, a Dockerfile, YAML, TOML or Zig; lines that follow are one."""
    return "\n".join(found[1] if (found := _MARKED.search(line)) else "" for line in source.splitlines())


def names_of_tests(source: str) -> list[str]:
    functions = (node.name for node in ast.walk(parsed(source)) if isinstance(node, ast.FunctionDef))
    return [name.replace("_", " ") for name in functions if name.startswith("test_")]


def messages(source: str) -> list[str]:
    """Return the strings of Python source of three words or more that are no docstrings: printed lines, and SQL."""
    statements = {id(node.value) for node in ast.walk(parsed(source)) if isinstance(node, ast.Expr)}
    strings = (
        node for node in ast.walk(parsed(source)) if isinstance(node, ast.Constant) and id(node) not in statements
    )
    return [node.value for node in strings if isinstance(node.value, str) and len(node.value.split()) > 2]


def sentences(text: str) -> list[str]:
    """Return the sentences of Markdown or of a docstring: not those of tables, headings and code."""
    text = re.sub(r"^```.*?^```|^(?: {4}|[|#<!]).*?$|^:.*?$", "\n", text, flags=re.M | re.S)
    paragraphs = re.split(r"\n\s*\n|^\s*(?:[-*]|\d+\.) ", re.sub(r"\]\([^)]*\)", "]", text), flags=re.M)
    return [one for each in paragraphs for one in re.split(r"(?<=[.!?])(?:\*\*)?\s+", " ".join(each.split()))]
