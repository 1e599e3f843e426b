"""Tests of the panels of completeness on the page of quality: contracts, and timeliness against accuracy."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from hopwatch.dashboards.queries.completeness import MAX_CONTRACTS
from hopwatch.dashboards.queries.query_cache import QueryCache
from hopwatch.monitor import settings
from tests.support.clock import ManualClock
from tests.support.dashboard_stores import read_page, run_app
from tests.support.spool import at_us
from tests.support.workspace import CONFIGURATION, CONTRACTS, Workspace, one_of_ten_lost


def read_quality(workspace: Workspace, now_us: int, **query: str) -> str:
    """Return the page of quality as it is at a moment."""
    now = ManualClock(now_us)
    answers = QueryCache(workspace.store_url, now, settings.load(workspace.config, flags={}, environ={}))
    tested = run_app(answers, now, page="quality", **query)
    assert not tested.exception
    return read_page(tested)


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """Return a place with two contracts, and a window that lost one of ten messages."""
    return Workspace(tmp_path).configure(CONFIGURATION + CONTRACTS).watch(*one_of_ten_lost())


def test_a_contract_shows_its_last_two_spans(place: Workspace) -> None:
    """Each with its state, counts, and what stands in the way."""
    told = read_quality(place, at_us(61))
    assert told.count('hw-exact">strict') == told.count('hw-exact">loose') == 2
    assert '2026-01-01 00:00 UTC</span><span class="hw-first">to 2026-01-01 00:01 UTC' in told
    assert '<span class="hw-bad">will not be</span>' in told
    assert "1 messages are surely lost, more than lost_below allows" in told
    assert ">complete<" in told
    assert "the store has no such windows" in told


def test_contracts_of_other_streams_are_left_out(place: Workspace) -> None:
    """A page of one stream has its contracts alone."""
    place.configure(CONFIGURATION + '[streams.other]\npath = "x -> y"\n' + CONTRACTS.replace("orders", "other", 1))
    told = read_quality(place, at_us(61), stream="orders")
    assert "strict" not in told
    assert "loose" in told


def test_a_contract_that_cannot_be_answered_says_why(place: Workspace) -> None:
    """A node that the path of the store does not have; the others are answered."""
    place.configure(
        CONFIGURATION.replace("a -> b", "a -> b -> c")
        + CONTRACTS.replace("[completeness.loose]", 'nodes = ["c"]\n[completeness.loose]')
    )
    told = read_quality(place, at_us(61))
    assert "the path that the store of orders was made by has no node c; it has a, b" in told
    assert "loose" in told


def test_of_many_contracts_some_are_shown(place: Workspace) -> None:
    """And how many are not."""
    many = "".join(f'[completeness.c{n}]\nstream = "orders"\nover = "1m"\n' for n in range(MAX_CONTRACTS + 3))
    place.configure(CONFIGURATION + many)
    assert "3 more are not shown." in read_quality(place, at_us(61))


def test_the_curve_of_a_stream_is_drawn_with_its_table_and_proposal(place: Workspace) -> None:
    """Of the stream that is looked at, over the range that is shown."""
    told = read_quality(place, at_us(61), stream="orders")
    assert "Timeliness against accuracy" in told
    (data,) = re.findall(r'class="hw-wide" src="data:image/svg\+xml;base64,([^"]+)"', told)
    assert b">judged now, 3.0 min</text>" in base64.b64decode(data)
    assert 'transit = "1s"\nsettle = "30s"' in told
    assert "Timeliness against accuracy" not in read_quality(place, at_us(61))


def test_a_range_without_messages_says_so(place: Workspace) -> None:
    """Instead of an empty picture."""
    span = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-03T00:00:00Z"}
    told = read_quality(place, at_us(3 * 86_400), stream="orders", **span)
    assert "No final window of this range has messages." in told
    assert 'class="hw-wide"' not in told


def test_without_a_configuration_there_is_no_panel(place: Workspace) -> None:
    """A page over a store alone shows what is in the store."""
    now = ManualClock(at_us(61))
    tested = run_app(QueryCache(place.store_url, now), now, page="quality", stream="orders")
    assert not tested.exception
    assert "Timeliness" not in read_page(tested)
