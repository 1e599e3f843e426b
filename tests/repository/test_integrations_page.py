"""Tests of the page on integrations: what it says to do is run by the test that it names."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import pytest

from tests.repository import ROOT

PAGE: Final = (ROOT / "docs" / "INTEGRATIONS.md").read_text("utf-8")
MIN_CHARS: Final = 3
COMMON: Final = {"hopwatch", "from", "import", "with", "alerts", "orders", "router", "sink", "NAME"}


class Row(NamedTuple):
    """Row of the page: what somebody has, what to do, and the test that runs it."""

    have: str
    advice: str
    test: str


ROWS: Final = [
    Row(*(cell.strip() for cell in line.strip("|").split("|")))
    for line in PAGE.splitlines()
    if line.startswith("|") and "---" not in line and not line.startswith("| I have")
]


def find_names(advice: str) -> set[str]:
    """Return the names in the code of an advice, but for those that are of no importance."""
    code = " ".join(re.findall(r"`([^`]+)`", advice))
    return {name for name in re.findall(r"[A-Za-z_]+", code) if len(name) >= MIN_CHARS} - COMMON


def read_with_support(test: str) -> str:
    """Return the text of a test, and of the modules of tests that it imports."""
    own = (ROOT / "tests" / test).read_text("utf-8")
    imported = re.findall(r"^from (tests[.\w]*) import (\w+)", own, re.MULTILINE)
    places = [ROOT / f"{place.replace('.', '/')}.py" for one, name in imported for place in (one, f"{one}.{name}")]
    return own + "".join(place.read_text("utf-8") for place in places if place.exists())


@pytest.mark.parametrize("row", ROWS, ids=[row.have for row in ROWS])
def test_each_advice_is_run_by_the_test_that_it_names(row: Row) -> None:
    """Each name in the code of the advice stands in the test, or in what the test imports."""
    told = read_with_support(row.test.strip("`"))
    assert [name for name in find_names(row.advice) if name not in told] == []


def test_the_page_has_both_directions() -> None:
    """Messages are stamped, and results go somewhere."""
    assert re.findall(r"^## (.+)$", PAGE, re.MULTILINE) == ["Where messages are stamped", "Where results go"]
    assert len({row.have for row in ROWS}) == len(ROWS)
