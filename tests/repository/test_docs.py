"""Tests of all pages: the index has each, links lead somewhere, lines are short, what is quoted is the program's."""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from hopwatch.monitor import settings
from tests.repository import ROOT
from tests.repository.deployment import commands
from tests.repository.line_limits import MOST_COLUMNS
from tests.support import page_blocks

DOCS: Final = ROOT / "docs"
PAGES: Final = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
GUIDES: Final = sorted([ROOT / "README.md", *DOCS.glob("*.md")])
PRODUCT: Final = (
    "probes",
    "gate",
    "client",
    "deliver",
    "scale",
    "rate",
    "monitor",
    "alerts",
    "display",
    "api",
    "dashboards",
    "cli",
)
AMERICAN: Final = re.compile(
    r"(?i)\b(?:colors?|behaviors?|labeled|cancell?ed(?<!cancelled)|judgments?|neighbors?|favor\w*|centers?|catalogs?"
    r"|licenses?|gray|analyz[a-z]+|[a-z]{3,}(?:iz(?:e[ds]?|ing|ations?)))\b"
)
NO_AMERICANISM: Final = frozenset({"oversized", "serialization"})
"""The latter is what PostgreSQL calls one of its errors."""
_LINK: Final = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
_FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def prose(page: Path) -> str:
    """Return the text of a page without its blocks and what is set as code."""
    return re.sub(r"`[^`]*`", "", _FENCED.sub("", page.read_text("utf-8")))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", _FENCED.sub("", page.read_text("utf-8")), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.append(f"{anchor}-{number}" if (number := found.count(anchor)) else anchor)
    return frozenset(found)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    """To a file of the repository, and where a place in it is named, to a heading."""
    wrong = []
    for link in _LINK.findall(prose(page)):
        path, _, place = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (place and place not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def test_the_index_has_every_page() -> None:
    """Each once; decisions have an index of their own, with every one of them."""
    for index in (DOCS / "README.md", DOCS / "adr" / "README.md"):
        listed = [index.parent / link for link in _LINK.findall(prose(index))]
        below = (
            index.parent.rglob("*.md")
            if index.parent.name == "adr"
            else [*DOCS.glob("*.md"), *DOCS.glob("runbooks/*.md")]
        )
        assert [page for page in below if page != index and listed.count(page) != 1] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_lines_are_short(page: Path) -> None:
    """But rows of tables, a word that cannot be broken, such as a URL, and what JSON says in one string."""
    text = re.sub(r"^```json\n.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    long = [line for line in text.splitlines() if len(line) > MOST_COLUMNS and not line.startswith("|")]
    assert [line for line in long if max(map(len, line.split())) < MOST_COLUMNS] == []


@pytest.mark.parametrize("page", [*GUIDES, ROOT / "CONTRIBUTING.md"], ids=_name)
def test_the_first_sentence_says_what_a_page_is_about(page: Path) -> None:
    """Below one title; it does not begin with a question."""
    title, _, text = page.read_text("utf-8").partition("\n\n")
    assert re.fullmatch(r"# \S.*", title)
    assert text.split()[0] not in {"What", "Who", "Which", "How"}


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_words_are_spelt_as_in_britain(page: Path) -> None:
    """Prose is in British spelling, but for names of programs and code."""
    text = _LINK.sub("]", prose(page))
    assert {word for word in AMERICAN.findall(text) if word.lower() not in NO_AMERICANISM} == set()


def hopwatch_lines() -> list[tuple[str, str]]:
    """Return the command lines of all guides that call the program."""
    return [
        (_name(page), one.line)
        for page in GUIDES
        for one in page_blocks.commands(re.sub(r" \\\n\s*", " ", page.read_text("utf-8")))
        if one.line.startswith(f"{commands.PROGRAM} ")
    ]


@pytest.mark.parametrize(("page", "line"), hopwatch_lines())
def test_every_command_line_is_taken(page: str, line: str) -> None:
    """By the program itself, up to what stands behind a comment, a pipe or another command."""
    first = next(iter(commands.of_script(re.split(r" # | > ", line)[0].replace("$?", ""))))
    assert commands.refusal(*shlex.split(shlex.join(first))[1:]) == "", page


@pytest.mark.parametrize("name", ["CONFIGURE.md", "OPERATE.md"])
def test_settings_are_valid(name: str, tmp_path: Path) -> None:
    """The tables of a page together make a configuration."""
    (tmp_path / "hopwatch.toml").write_text("\n".join(page_blocks.of(page_blocks.page(f"docs/{name}"), "toml")))
    settings.load(tmp_path / "hopwatch.toml", flags={}, environ={})


def quoted() -> list[str]:
    """Return what TROUBLESHOOT says that the program prints."""
    text = page_blocks.page("docs/TROUBLESHOOT.md")
    tables = re.findall(r"^\| it prints .*\n\|[-|]*\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [row.split("|")[1].strip().strip("`") for table in tables for row in table.splitlines()]


@pytest.mark.parametrize("words", quoted())
def test_what_troubleshoot_quotes_is_what_the_program_prints(words: str) -> None:
    """Each piece between names and numbers, letter by letter."""
    assert [piece for piece in words.split("…") if piece.strip() not in _source()] == []


@cache
def _source() -> str:
    """Return all strings of the product, those that follow one another joined."""
    text = "\n".join(path.read_text("utf-8") for folder in PRODUCT for path in sorted((ROOT / folder).rglob("*.py")))
    return re.sub(r'"\s*\n\s*f?"', "", text)


def test_troubleshoot_answers_each_question() -> None:
    """One heading a symptom, and a table of words wherever the program prints some."""
    assert len(quoted()) > 20
    headings = anchors(DOCS / "TROUBLESHOOT.md")
    assert {"my-stream-is-unknown", "my-stream-is-idle", "all-messages-are-lost", "there-are-orphans"} <= headings


@pytest.mark.parametrize("page", GUIDES, ids=_name)
def test_blocks_can_be_read(page: Path) -> None:
    """Python is Python and what it imports of ours is there, TOML is TOML."""
    text = page.read_text("utf-8")
    for block in page_blocks.of(text, "toml"):
        tomllib.loads(block)
    for block in page_blocks.of(text, "python"):
        for node in ast.walk(ast.parse(block)):
            if not isinstance(node, ast.ImportFrom) or str(node.module).partition(".")[0] != "hopwatch":
                continue
            if str(node.module).startswith("hopwatch.integrations."):
                # These import what they integrate with, which stands beside Hopwatch and not with its tests.
                file = ROOT / "src" / f"{str(node.module).replace('.', '/')}.py"
                assert all(f'"{name.name}"' in file.read_text("utf-8") for name in node.names)
            else:
                __import__(str(node.module), fromlist=[name.name for name in node.names])
