"""Tests of the one place that writes markup."""

from __future__ import annotations

import pytest

from hopwatch.dashboards import markup


@pytest.mark.parametrize("name", ["&lt;b&gt;", "&amp;", "&#58;red", "a&b"])
def test_what_stands_for_a_character_in_markdown_stays_as_it_is(name: str) -> None:
    """Markdown reads entities as HTML does: a name that looks like one is shown as it is written."""
    shown = markup.escape_markdown(name)
    assert "\\&" in shown
    assert shown.replace("\\", "") == name
