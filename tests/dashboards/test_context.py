"""Tests of what every page is given."""

from __future__ import annotations

from datetime import UTC
from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from hopwatch.dashboards import context
from hopwatch.dashboards.views.address import PageAddress, Zone

NEWEST = {"stream": "orders"}
FIXED = NEWEST | {"from": "2026-01-01T00:10:00Z", "to": "2026-01-01T00:12:00Z"}


@pytest.mark.parametrize("told", ["America", "x" * 5_000, "../etc", "Nowhere/Else", ""])
def test_a_zone_that_is_none_is_utc(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any name that is no time zone is read as UTC."""
    monkeypatch.setattr(st, "context", SimpleNamespace(timezone=told))
    assert context.read_zone(PageAddress(zone=Zone.LOCAL)) is UTC


def _told(value: str | None, shown: str | None) -> None:
    """Stand for a page whose browser tells of a choice of the range."""
    import streamlit as st  # noqa: PLC0415 - a page brings its own

    from hopwatch.dashboards.context import PageContext  # noqa: PLC0415 - as above
    from hopwatch.dashboards.views.address import RangePreset  # noqa: PLC0415 - as above

    def means(name: str | None) -> dict[str, object]:
        return {"range": RangePreset(name), "from_us": None, "to_us": None} if name else {}

    st.session_state["range"] = value
    PageContext.on_change("range", means, shown)()


@pytest.mark.parametrize(
    ("value", "shown", "query"),
    [
        ("24h", "1h", NEWEST | {"range": "24h"}),
        # A drag has just set a range, and the widget that a refresh tells of is gone from the page.
        ("1h", "1h", FIXED),
        ("1h", None, NEWEST),
        (None, "1h", FIXED),
    ],
)
def test_what_a_widget_was_drawn_with_is_no_change(value: str | None, shown: str | None, query: dict[str, str]) -> None:
    """Neither is a value that means nothing: the range that was chosen stays."""
    page = AppTest.from_function(_told, args=(value, shown))
    for name, said in FIXED.items():
        page.query_params[name] = said
    page.run()
    assert not page.exception
    told = {name: value if isinstance(value, str) else value[0] for name, value in page.query_params.items()}
    assert told == query


def _listed() -> None:
    """Stand for a page with a list of two windows."""
    import streamlit as st  # noqa: PLC0415 - a page brings its own

    from hopwatch.dashboards.context import PageContext  # noqa: PLC0415 - as above
    from hopwatch.dashboards.pages.stream_controls import parse_window_choice  # noqa: PLC0415 - as above

    change = PageContext.on_change("window", parse_window_choice, None)
    st.selectbox("Window", [None, 60_000_000, 0], format_func=str, key="window", on_change=change)


@pytest.mark.parametrize(("label", "query"), [("60000000", {"window": "1970-01-01T00:01:00Z"}), ("120000000", {})])
def test_a_window_that_has_left_the_list_is_not_chosen(label: str, query: dict[str, str]) -> None:
    """Streamlit gives the label of a choice that is not in the list: the page stays as it is."""
    page = AppTest.from_function(_listed).run()
    (widget,) = page.selectbox
    # As in a browser that has not drawn the newest list yet.
    widget.options.append("120000000")
    widget.set_value(label).run()
    assert not page.exception
    assert {name: value if isinstance(value, str) else value[0] for name, value in page.query_params.items()} == query
