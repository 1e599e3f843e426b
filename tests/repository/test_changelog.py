"""Tests of the changelog and of the fragments that the next release is made of."""

from __future__ import annotations

import re
from typing import Final

import pytest

from hopwatch import __version__
from tests.repository import ROOT
from tests.repository.line_limits import MOST_COLUMNS
from tests.repository.project import PROJECT

CHANGES: Final = ROOT / "changes"
CONFIGURED: Final = PROJECT["tool"]["towncrier"]
KINDS: Final = tuple(one["directory"] for one in CONFIGURED["type"])
INDENT: Final = len("- ")


def wrong(name: str) -> str:
    """Return what is wrong with the name of a fragment, nothing if it is one that is taken."""
    found = re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*\.(\w+)\.md", name)
    if found is None:
        return "NAME.KIND.md, a few words with hyphens before the kind"
    return "" if found[1] in KINDS else f"a kind that is none of {', '.join(KINDS)}"


def test_every_fragment_is_of_a_known_kind() -> None:
    """Every file in the folder is a fragment of a known kind, or is ignored by towncrier."""
    names = {path.name for path in CHANGES.iterdir()} - set(CONFIGURED["ignore"])
    assert {name: wrong(name) for name in names if wrong(name)} == {}
    assert all((CHANGES / name).is_file() for name in CONFIGURED["ignore"])


@pytest.mark.parametrize(
    ("name", "is_right"),
    [
        ("doctor-says-more.added.md", True),
        ("0162.fixed.md", True),
        ("doctor.new.md", False),
        ("Doctor.added.md", False),
        ("doctor.added", False),
        ("added.md", False),
    ],
)
def test_a_wrong_name_is_seen(name: str, *, is_right: bool) -> None:
    """A kind that does not exist, capitals, no kind at all."""
    assert (wrong(name) == "") is is_right


def test_every_fragment_has_a_text_that_fits() -> None:
    """One bullet is made of it, so it has none of its own, and room for that is left."""
    for path in CHANGES.glob("*.*.md"):
        lines = path.read_text("utf-8").splitlines()
        assert lines, path
        assert not lines[0].startswith(("-", "*", "#", " ")), path
        assert max(map(len, lines)) <= MOST_COLUMNS - INDENT, path


def test_the_pages_name_the_kinds() -> None:
    """As they are configured, and in the order in which Keep a Changelog has them."""
    for name in ("CONTRIBUTING.md", "changes/README.md"):
        text = (ROOT / name).read_text("utf-8")
        assert tuple(re.findall(rf"`({'|'.join(KINDS)})`", text))[: len(KINDS)] == KINDS


def test_the_version_has_its_part() -> None:
    """Below the mark where the next one will stand, the newest first, each kind once."""
    text = (ROOT / CONFIGURED["filename"]).read_text("utf-8")
    assert text.count(CONFIGURED["start_string"]) == 1
    released = text.partition(CONFIGURED["start_string"])[2]
    headings = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", released, re.MULTILINE)
    assert headings[0] == __version__
    assert re.findall(r"^## .*", text, re.MULTILINE) == re.findall(r"^## \S+ \(.*\)$", released, re.MULTILINE)
    newest = re.findall(r"^### (\w+)$", released, re.MULTILINE)
    assert newest[:4] == ["Added", "Changed", "Fixed", "Security"]
