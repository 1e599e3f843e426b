"""Tests of the page of a message in every state that it may meet, as Streamlit runs it, without a browser."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from hopwatch.dashboards.queries.query_cache import FRESH_FOR_US, QueryCache
from hopwatch.monitor import settings
from tests.support.clock import ManualClock
from tests.support.dashboard_stores import (
    HOSTILE,
    build_windows,
    clock,
    fill,
    open_page,
    read_elements,
    read_page,
    run_app,
    store_url,
)
from tests.support.spool import observation_batch, pack_lags
from tests.support.traced_service import TRACED_CONFIGURATION, lose_one_of_two
from tests.support.workspace import Workspace, closing_batches, one_of_ten_lost

LOST_ID = f"{9:032x}"


def answers_of(place: Workspace, now: ManualClock) -> QueryCache:
    """Return the answers of a dashboard over a place where the monitor has worked."""
    return QueryCache(place.store_url, now, settings.load(place.config, flags={}, environ={}))


def found(place: Workspace, message_id: str, **query: str) -> AppTest:
    """Return the page of a message."""
    now = clock()
    tested = run_app(answers_of(place, now), now, page="message", id=message_id, **query)
    assert not tested.exception
    return tested


def watched(folder: Path, *records: Any) -> Workspace:  # noqa: ANN401 - batches or bytes
    """Return a place whose monitor has judged what probes say, one of ten messages lost unless it is given."""
    return Workspace(folder).configure().watch(*(records or one_of_ten_lost()))


def test_without_a_store_it_says_how_to_begin(tmp_path: Path) -> None:
    """As every page does."""
    tested = open_page(store_url(tmp_path), page="message", id="7")
    assert not tested.exception
    assert "There is no store yet" in read_page(tested)


def test_without_an_id_it_says_what_one_is(tmp_path: Path) -> None:
    """Without an id the page lists the forms of ids."""
    fill(store_url(tmp_path), *build_windows(2))
    assert "An id is a UUID, 32 hexadecimal digits, a number, or the text" in read_page(
        open_page(store_url(tmp_path), page="message")
    )


def test_a_message_of_traced_services_leads_to_its_trace(tmp_path: Path) -> None:
    """From its own page and from that of its window, where the configuration says where traces are."""
    place, lost_id = lose_one_of_two(tmp_path)
    link = f'<a href="https://jaeger.example/trace/{lost_id[:32]}" target="_blank" rel="noopener noreferrer">trace</a>'
    assert link in read_page(found(place, lost_id, stream="orders"))
    now = clock()
    window = run_app(answers_of(place, now), now, page="window", stream="orders", window="2026-01-01T00:00:00Z")
    assert link in read_page(window)
    place.configure(TRACED_CONFIGURATION.replace("trace_url", "# trace_url"))
    assert "jaeger.example" not in read_page(found(place, lost_id, stream="orders"))


def test_an_id_that_is_pasted_goes_into_the_url(tmp_path: Path) -> None:
    """Without the blanks around it."""
    tested = found(watched(tmp_path), "")
    tested.text_input[0].set_value(f" {LOST_ID}\n").run()
    assert tested.query_params["id"] == LOST_ID
    assert "LOST" in read_page(tested)


@pytest.mark.parametrize("written", ["9", LOST_ID, "00000000-0000-0000-0000-000000000009"])
def test_a_lost_message_says_where_and_leads_to_its_window(written: str, tmp_path: Path) -> None:
    """Its stamps up to there, how long each after the one before, and the link to the minute."""
    told = read_page(found(watched(tmp_path), written))
    assert "Lost on its way to b." in told
    assert "2026-01-01 00:00:00.001" in told
    assert "+1.0 ms" in told
    assert "lost on its way to b" in told
    assert "page=window&amp;stream=orders&amp;node=b&amp;window=2026-01-01T00%3A00%3A00Z" in told


def test_digits_that_are_a_number_too_are_both(tmp_path: Path) -> None:
    """Digits that are a hexadecimal id and a number, too, are searched for as both."""
    told = read_page(found(watched(tmp_path, observation_batch([10, 16])), f"{16:032x}"))
    assert told.index(f">{16:032x}<") < told.index(f">{10:032x}<")


def test_a_message_that_arrived_is_delivered(tmp_path: Path) -> None:
    """At the end of the pathway."""
    told = read_page(found(watched(tmp_path), "3"))
    assert "DELIVERED" in told
    assert "It left b, the end of its way." in told


@pytest.mark.parametrize(("outcome", "word"), [(b"\1", "filtered"), (b"\2", "rejected")])
def test_a_message_that_was_stopped_says_why(outcome: bytes, word: str, tmp_path: Path) -> None:
    """With the reason that the service gave, as text."""
    stopped = observation_batch([0], "b", outcome=outcome, reason=b"\0", reasons=("<b>no price</b>",), lag_out_us=b"")
    told = read_page(found(watched(tmp_path, observation_batch([0]), stopped, *closing_batches(seq=1)), "0"))
    assert word.upper() in told
    assert f"It was {word} at b: &lt;b&gt;no price&lt;/b&gt;." in told


def test_clocks_that_differ_are_told_and_the_order_is_that_of_the_pathway(tmp_path: Path) -> None:
    """A stamp before the preceding one has a negative time, and stamps are in the order of the pathway."""
    early = observation_batch([0], "b", lag_in_us=pack_lags(-9_000), lag_out_us=pack_lags(-8_000))
    told = read_page(found(watched(tmp_path, observation_batch([0]), early, *closing_batches(seq=1)), "0"))
    assert "-11.0 ms, clocks differ" in told
    assert told.index("probe-of-a") < told.index("probe-of-b")


def test_the_journey_of_a_lost_message_outlives_its_segments(tmp_path: Path) -> None:
    """The store has its stamps, the transport has nothing any more."""
    place = watched(tmp_path)
    for path in (tmp_path / "spool").rglob("*.seg"):
        path.unlink()
    told = read_page(found(place, "9"))
    assert "Lost on its way to b." in told
    assert "probe-of-a" in told
    assert "It is missing: its stamps are kept as long as its window." in told


def test_of_very_many_stamps_of_a_lost_message_some_are_kept(tmp_path: Path) -> None:
    """Of many stamps of a lost message some are kept, and the page says how many there were."""
    alone = {"lag_in_us": pack_lags(1_500), "lag_out_us": b""}
    place = watched(
        tmp_path, observation_batch([9] * 300), observation_batch([9], "b", **alone), *closing_batches(seq=1)
    )
    for path in (tmp_path / "spool").rglob("*.seg"):
        path.unlink()
    told = read_page(found(place, "9"))
    assert "Lost inside b." in told
    assert "It is missing: 256 of its 301 stamps are kept as long as its window." in told


def test_a_loss_that_is_not_sure_says_so(tmp_path: Path) -> None:
    """The probe of b fell silent: neither badge nor step calls it lost."""
    told = read_page(found(watched(tmp_path, *one_of_ten_lost()[:2]), "9")).replace(".hw-loud", "")
    assert "Not seen at b; it is not known whether it was lost." in told
    assert "UNKNOWN" in told
    assert "LOST" not in told
    assert "b: 1 of 1 probe instances did not tell all" in told
    assert "hw-loud" not in told


@pytest.mark.parametrize("text", ["8888", "no such id", "<img src=x onerror=alert(1)>", "x" * 5_000])
def test_an_id_that_is_none_is_one_line(text: str, tmp_path: Path) -> None:
    """With where it was looked for, and how long stamps are kept."""
    tested = found(watched(tmp_path), text, stream="orders")
    (warning,) = tested.warning
    assert "Nothing is kept of" in warning.value
    assert "it is in none of the 1 segments that are kept" in warning.value.replace("\\", "")
    assert "in this stream 1 h 5 min from the start of its minute" in read_page(tested)
    assert "<img src=x" not in "".join(read_elements(tested, "html"))


def test_only_the_named_stream_is_searched(tmp_path: Path) -> None:
    """And one that nobody knows is told, as everywhere."""
    place = Workspace(tmp_path).configure()
    place.configure(place.config.read_text() + '[streams.trades]\npath = "a -> b"\n')
    place.watch(*one_of_ten_lost(), observation_batch([9], stream="trades"))
    assert "trades, window" in read_page(found(place, "9"))
    assert "trades, window" not in read_page(found(place, "9", stream="orders"))
    assert "there is no stream" in "".join(read_elements(found(place, "9", stream="nobody"), "warning"))


def test_a_spool_that_is_gone_is_told_and_the_loss_is_shown(tmp_path: Path) -> None:
    """Without its spool a message's loss is shown, with an error about the spool."""
    place = watched(tmp_path)
    shutil.rmtree(tmp_path / "spool")
    tested = found(place, "9")
    (error,) = tested.error
    assert "Not all could be searched: the spool" in error.value.replace("\\", "")
    assert "Lost on its way to b." in read_page(tested)


def test_when_the_store_goes_away_the_page_says_so(tmp_path: Path) -> None:
    """Without the store the last answer stays for a moment, and then the page says that it cannot be searched."""
    place, now = watched(tmp_path), clock()
    answers = answers_of(place, now)
    run_app(answers, now, page="message", id="9")
    for path in tmp_path.glob("store.db*"):
        path.unlink()
    (tmp_path / "store.db").write_bytes(b"this is no database any more" * 1_000)
    now.advance(FRESH_FOR_US / 1e6 + 1)
    tested = run_app(answers, now, page="message", id="9")
    assert not tested.exception
    errors = "".join(read_elements(tested, "error")).replace("\\", "")
    assert "The store cannot be read" in errors
    assert "Not all could be searched: the store" in errors
    assert "probe-of-a" in read_page(tested)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str, tmp_path: Path) -> None:
    """Of probes, reasons and ids."""
    filtered: dict[str, Any] = {"outcome": b"\1", "reason": b"\0", "reasons": (name,)}
    place = watched(tmp_path, observation_batch([0], probe=name, **filtered))
    for text in ("0", name):
        tested = found(place, text)
        assert "<img src=x" not in "".join(read_elements(tested, "html"))
        assert not any(name in one for one in read_elements(tested, "markdown"))
