"""Tests of what the pages of a window and of a message show: laws of their parts, decided without a store."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.dashboards.queries.models import Edge, Graph
from hopwatch.dashboards.queries.search_models import MessagePath, SearchResult
from hopwatch.dashboards.queries.window_models import AgedOutRecords, WindowHole
from hopwatch.dashboards.views import conservation, journey, lost_ids, window_detail
from hopwatch.dashboards.views.journey import JourneyKey
from hopwatch.display import texts
from hopwatch.monitor.lookup.journey import MessageStamp
from hopwatch.monitor.lookup.missing_messages import MissingMessage
from hopwatch.monitor.results import Revision, Status, Verdict, WindowResult
from hopwatch.probes.contract.ids import id_bytes
from tests.support.dashboard_stores import HOSTILE
from tests.support.spool import WINDOW_POLICY, at_us, pack_ids
from tests.support.windows import START_US, window

CHAIN = Graph(("a", "b"), (Edge(0, 1, is_required=True),))
COUNTS = st.integers(0, 10**9)


def stamp(node: str, lag_in_us: int | None, lag_out_us: int | None, outcome: str = "passed") -> MessageStamp:
    """Return a stamp of message 7."""
    return MessageStamp(START_US, pack_ids(7), "orders", node, "p", lag_in_us, lag_out_us, outcome, "")


def way(*sides: str, status: Status = Status.FINAL, graph: Graph = CHAIN) -> MessagePath:
    """Return a chain of two nodes, both sides of which are stamped."""
    judged = window(0, status=status, lost={"a": 2, "b": 2})
    return MessagePath(graph, sides or ("both", "both"), judged if status.is_final else replace(judged, verdict=None))


def told(stamps: tuple[MessageStamp, ...], of: MessagePath, *lost_at: str) -> journey.Journey:
    """Return the journey of these stamps."""
    lost = tuple(MissingMessage("orders", START_US, node, 1, 1, pack_ids(7), pack_ids(7).hex()) for node in lost_at)
    return journey.build_journey(
        SearchResult(stamps, lost), JourneyKey("orders", START_US, pack_ids(7)), of, START_US, UTC
    )


def named(packed: Sequence[bytes]) -> tuple[tuple[bytes, str], ...]:
    """Return ids of which nothing is known but their bytes, as they are shown."""
    return tuple((one, one.hex()) for one in packed)


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.integers(0, 100), COUNTS, st.sampled_from(("?", "known")))
def test_the_parts_of_the_bar_add_up(
    delivered: int, filtered: int, rejected: int, lost: int, surely: int, in_flight: int, upper: str
) -> None:
    """The parts of the bar add up to the known messages; an unknown part has no share and no number."""
    lower, is_known = lost * surely // 100, upper == "known"
    counts: dict[str, Any] = {
        "delivered": delivered,
        "filtered": filtered,
        "rejected": rejected,
        "lost": lost,
        "lost_lower": lower,
    }
    known = delivered + filtered + rejected + lost + in_flight
    one: WindowResult = replace(
        window(0), known=known, in_flight=in_flight, lost_upper=lost if is_known else None, **counts
    )
    bar = conservation.build_conservation(one)
    numbered = [part for part in bar.parts if part.kind != "unknown"]
    assert sum(int(part.number.replace(",", "")) for part in numbered) == known
    assert sum(part.share for part in numbered) == pytest.approx(1 if known else 0)
    assert [part.number for part in bar.parts if part.kind == "unknown"] == ([] if is_known else [texts.UNKNOWN])
    if not is_known:
        assert not bar.total.endswith(" 0 lost")


@given(st.lists(st.binary(min_size=16, max_size=16), unique=True, max_size=130), st.integers(1, 10**6))
def test_the_pages_of_lost_ids_are_all_of_them_once(packed: list[bytes], beyond: int) -> None:
    """One page after the other gives the list, no page is longer than it may be, and none lies beyond the last."""
    joined = named(packed)
    first = lost_ids.select_page(joined, "", 1)
    pages = [lost_ids.select_page(joined, "", part) for part in range(1, first.parts + 1)]
    assert [one for page in pages for one in page.ids] == [*joined]
    assert all(len(page.ids) <= lost_ids.IDS_PER_PAGE for page in pages)
    assert [page.next for page in pages] == [*range(2, first.parts + 1), None]
    assert [page.previous for page in pages] == [None, *range(1, first.parts)]
    assert lost_ids.select_page(joined, "", first.parts + beyond) == pages[-1]


@given(st.lists(st.binary(min_size=16, max_size=16), unique=True, min_size=1, max_size=40), st.data())
def test_every_lost_id_is_found_by_itself(packed: list[bytes], data: st.DataObject) -> None:
    """With and without hyphens, in either case, and by any part of its digits."""
    chosen = data.draw(st.sampled_from(packed))
    one = chosen.hex()
    hyphens = f"{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:]}"
    start = data.draw(st.integers(0, 28))
    for text in (one, hyphens.upper(), f" {one} ", one[start : start + 4]):
        page = lost_ids.select_page(named(packed), text, 1)
        assert (chosen, one) in page.ids or page.parts > 1


def test_an_id_is_looked_for_as_it_is_shown() -> None:
    """By the text or a part of it, in either case, by its number, and by its hash."""
    kept = [
        (id_bytes("Order-7"), "Order-7"),
        (id_bytes(1027), "1027"),
        (pack_ids(3), f"{pack_ids(3).hex()} (hash of a text)"),
    ]
    for text, found in (("order-7", 0), ("RDER", 0), (id_bytes("Order-7").hex(), 0), ("1027", 1), ("hash of", 2)):
        assert lost_ids.select_page(kept, text, 1).ids == (kept[found],)
    assert "hopwatch find TEXT" in lost_ids.format_hash_note(lost_ids.select_page(kept, "", 1))
    assert not lost_ids.format_hash_note(lost_ids.select_page(kept[:2], "", 1))


@given(st.integers(0, 5), st.integers(0, 5), st.sampled_from(Status), st.sampled_from(["a", "b"]))
def test_a_redrive_is_offered_for_what_it_would_send(loss: int, surely: int, status: Status, node: str) -> None:
    """All of a final window that is surely lost behind another node: what else is missing, redrive refuses."""
    lower = min(loss, surely)
    one = window(0, names=("a", "b"))
    nodes = tuple(replace(each, loss=loss, loss_lower=lower) for each in one.nodes)
    commands = lost_ids.build_redrive_commands(replace(one, status=status, nodes=nodes), CHAIN, node)
    is_offered = status.is_final and node == "b" and 0 < loss == lower
    assert (commands is not None) == is_offered
    for command in commands or ():
        assert f"--stream {one.stream} --node b --window 2026-" in command


@pytest.mark.parametrize("name", [*HOSTILE, "b"])
def test_the_csv_holds_every_id_and_names_as_they_are(name: str) -> None:
    """Read back by a reader of such files; the name of the file is one that any system takes."""
    one = window(0, stream=name, names=(name, "z"), lost={name: 2})
    rows = list(csv.DictReader(io.StringIO(lost_ids.build_csv(one, CHAIN, name, named([pack_ids(1), pack_ids(2)])))))
    assert [row["message_id"] for row in rows] == [pack_ids(1).hex(), pack_ids(2).hex()]
    assert {(row["stream"], row["node"], row["window_start"]) for row in rows} == {(name, name, "2026-01-01T00:00:00Z")}
    assert all(char.isalnum() or char in "._-" for char in lost_ids.build_file_name(one, name))


def test_no_name_in_the_csv_of_lost_ids_is_a_formula() -> None:
    """As in all other files."""
    one = window(0, stream="=1+1", names=("-1", "z"), lost={"-1": 1})
    (row,) = csv.DictReader(io.StringIO(lost_ids.build_csv(one, CHAIN, "-1", [(pack_ids(1), "=2+2")])))
    assert (row["stream"], row["node"], row["message_id"]) == ("'=1+1", "'-1", "'=2+2")


@pytest.mark.parametrize(
    ("counts", "seen"),
    [
        ({"lost_in_transit": 2}, "left a"),
        ({"lost_in_transit": 0, "lost_inside": 2}, "arrived at b"),
        ({"lost_in_transit": 1, "lost_inside": 1}, "left a or arrived at b"),
        ({"lost_in_transit": 0, "lost_after": 2}, "left b"),
        ({"lost_in_transit": 0}, "not known"),
    ],
)
def test_where_an_id_was_seen_last_is_no_more_than_the_counts_tell(counts: dict[str, int], seen: str) -> None:
    """Two places where they tell of two."""
    one = window(0, lost={"b": 2}, nodes={"b": counts})
    assert lost_ids.format_last_seen(CHAIN, one, "b") == seen
    assert lost_ids.format_last_seen(CHAIN, one, "nobody") == "not known"


def test_holes_in_words() -> None:
    """Each kind in a line of its own, and a batch alone is one."""
    hole = WindowHole("b", "p", at_us(-10), 2, {"queue_full": 3, "encode": 1_000}, at_us(65), has_set_aside=True)
    line = window_detail.build_hole_line(hole, UTC)
    assert (line.node, line.probe, line.since) == ("b", "p", "2025-12-31 23:59 UTC")
    assert line.holes == (
        "2 missing batches that may belong to this window",
        "1,000 observations dropped: encode",
        "3 observations dropped: queue_full",
        "batches of this window that came too late, or were implausible, and do not count",
        "silent without a bye: it reported everything up to 2026-01-01 00:01 UTC, and nothing after",
    )
    assert window_detail.build_hole_line(WindowHole("b", "p", 0, 1, {}, None, has_set_aside=False), UTC).holes == (
        "1 missing batch that may belong to this window",
    )
    told = window_detail.format_aged_out(AgedOutRecords("topic/0", 5, 1_004))
    assert told == "1,000 records of topic/0, 5 to 1,004, had aged out before they were read."


def test_where_a_window_stands_in_words() -> None:
    """With when it is judged where that is known, and what is in flight in a final one."""
    assert window_detail.format_status(window(0, status=Status.OPEN), WINDOW_POLICY, UTC) == (
        "It still receives: these are the counts so far. It is judged after 2026-01-01 00:04 UTC."
    )
    assert "judged after" not in window_detail.format_status(window(0, status=Status.PROVISIONAL), None, UTC)
    early = window_detail.format_status(window(0, status=Status.PROVISIONAL, overdue=7), None, UTC)
    assert early.endswith("not lost. 7 messages are overdue: missing beyond a deadline, for sure.")
    assert "1,500 came late and are in flight" in window_detail.format_status(
        window(0, in_flight=1_500), WINDOW_POLICY, UTC
    )
    assert window_detail.format_status(window(0, status=Status.AMENDED), WINDOW_POLICY, UTC).endswith(
        "by what came after."
    )


def test_what_was_dropped_is_not_denied_when_it_is_not_kept() -> None:
    """A window that is past changing has no causes any more; one that is not final has no hole so far."""
    dropped = window(0, nodes={"b": {"dropped": 3}})
    assert "kept only until a window can no longer change" in window_detail.format_no_holes(dropped, is_live=False)
    assert "so far" in window_detail.format_no_holes(window(0, status=Status.OPEN), is_live=True)


def test_a_revision_of_many_nodes_is_cut() -> None:
    """And says by how much; a node's name may have dots."""
    changed = {f"node.{number:03d}.seen": (0, 1) for number in range(100)}
    told = window_detail.build_amendment(Revision("orders", at_us(0), 2, at_us(0), changed), UTC)
    assert len(told.lines) + told.left_out == 100
    assert told.lines[0] == ("node.000", "seen 0 → 1")


PASSED_A = stamp("a", 1_000, 2_000)


@pytest.mark.parametrize(
    ("stamps", "of", "lost_at", "word", "sentence"),
    [
        ((PASSED_A, stamp("b", 3_000, 4_000)), way(), (), "DELIVERED", "It left b"),
        ((PASSED_A, stamp("b", 3_000, None)), way("both", "in"), (), "DELIVERED", "It left b"),
        ((PASSED_A, stamp("b", 3_000, None)), way(), ("b",), "LOST", "Lost inside b."),
        ((PASSED_A,), way(), ("b",), "LOST", "Lost on its way to b."),
        ((PASSED_A,), way(), ("a",), "LOST", "Lost after a."),
        ((), way(), ("b",), "LOST", "Lost at b."),
        ((PASSED_A, stamp("b", 3_000, None)), way(), (), "UNKNOWN", "No stamp that is kept shows it at the end"),
        ((PASSED_A,), way(status=Status.PROVISIONAL), (), "IN FLIGHT", "its window is not judged yet"),
        ((PASSED_A,), replace(way(), window=None), (), "UNKNOWN", "The store has no window of it"),
        ((stamp("a", 1_000, None, "rejected"),), way(), (), "REJECTED", "It was rejected at a."),
        ((stamp("b", None, None, "filtered"),), way(), (), "FILTERED", "It was filtered at b."),
        ((PASSED_A, stamp("b", 3_000, 4_000)), way(), ("a",), "LOST", "It left b, another end of its way."),
    ],
)
def test_what_became_of_a_message(
    stamps: tuple[MessageStamp, ...], of: MessagePath, lost_at: tuple[str, ...], word: str, sentence: str
) -> None:
    """By its stamps, by the lost ids, and by how its window stands."""
    found = told(stamps, of, *lost_at)
    assert found.mark.word == word
    assert sentence in found.summary
    assert [step.node for step in found.steps if step.is_lost] == list(lost_at)


NOT_KNOWN = "Not seen at b; it is not known whether it was lost."


@pytest.mark.parametrize(
    ("loss", "lower", "word", "sentence"),
    [
        (50, 0, "UNKNOWN", NOT_KNOWN),
        (50, 12, "UNKNOWN", "Not seen at b; 12 of 50 like it are surely lost."),
        (50, 50, "LOST", "Lost on its way to b."),
        (0, 0, "UNKNOWN", NOT_KNOWN),
    ],
)
def test_a_message_is_lost_only_where_all_that_are_missing_are(loss: int, lower: int, word: str, sentence: str) -> None:
    """By the bounds of the node in its window; else no badge, no step and no word says that it is."""
    losses = {"b": {"loss": loss, "loss_lower": lower, "loss_upper": None}}
    found = told((PASSED_A,), replace(way(), window=window(0, verdict=Verdict.UNKNOWN, nodes=losses)), "b")
    assert (found.mark.word, found.summary) == (word, sentence)
    assert [step.is_lost for step in found.steps if not step.side] == [word == "LOST"]
    assert ("lost" in found.steps[-1].outcome) is (word == "LOST")
    gone = told((PASSED_A,), replace(way(), window=None), "b")
    assert (gone.mark.word, gone.summary) == ("UNKNOWN", NOT_KNOWN)


def test_a_message_that_may_be_lost_inside_a_node_is_not_said_to_be_not_seen_there() -> None:
    """Its arrival there is a step: it was not seen leaving; behind a node that it left it was seen nowhere."""
    losses = {name: {"loss": 50, "loss_lower": 0, "loss_upper": None} for name in "ab"}
    of = replace(way(), window=window(0, verdict=Verdict.UNKNOWN, nodes=losses))
    found = told((PASSED_A, stamp("b", 3_000, None)), of, "b")
    assert found.summary == "Not seen leaving b; it is not known whether it was lost."
    assert [(step.node, step.outcome) for step in found.steps][-2:] == [("b", "passed"), ("b", "not seen leaving")]
    behind = told((PASSED_A,), of, "a")
    assert behind.summary == "Not seen behind a; it is not known whether it was lost."
    assert behind.steps[-1].outcome == "not seen behind it"
    assert told((), of, "b").steps[-1].outcome == "missing"


def test_two_messages_that_an_id_may_mean_are_two_journeys() -> None:
    """As it is read first comes first, whatever is newer; 16 hexadecimal digits may be a number too."""
    other = stamp("b", 1_000, None)._replace(message_id=pack_ids(8), event_time_us=at_us(70))
    found = SearchResult(
        (PASSED_A, other), (MissingMessage("orders", START_US, "b", 1, 1, pack_ids(8), pack_ids(8).hex()),)
    )
    keys = journey.list_keys(found, (pack_ids(7), pack_ids(8)))
    assert [(key.message_id, key.start_us) for key in keys] == [
        (pack_ids(7), at_us(0)),
        (pack_ids(8), at_us(60)),
        (pack_ids(8), at_us(0)),
    ]
    assert [step.node for step in journey.build_journey(found, keys[0], way(), 0, UTC).steps] == ["a", "a"]
    assert journey.build_journey(found, keys[2], way(), 0, UTC).lost_at == ("b",)


def test_a_journey_of_very_many_stamps_is_cut() -> None:
    """And a moment that only a broken clock tells is drawn."""
    found = told(tuple(stamp("a", number, None) for number in range(500)), way())
    assert (len(found.steps), found.left_out) == (journey.MAX_STAMPS, 300)
    broken = told((stamp("a", 2**62, None), stamp("b", None, None)), way())
    assert broken.steps[0].when == f"{START_US + 2**62} µs since 1970"
    assert broken.steps[1].when == texts.NONE


def test_until_when_stamps_are_kept_is_told() -> None:
    """Before that moment, after it, and where nobody knows it."""
    kept = replace(way(), kept_until_us=START_US + 60_000_000)
    assert told((PASSED_A,), kept).retention == "Stamps of this window are kept until 2026-01-01 00:01 UTC."
    past = replace(way(), kept_until_us=START_US - 60_000_000)
    assert told((PASSED_A,), past).retention.endswith("were kept until 2025-12-31 23:59 UTC: some may be gone.")
    assert told((), past, "b").retention.endswith("all may be gone.")
    assert told((PASSED_A,), way()).retention == ""


def test_what_was_not_searched_is_told() -> None:
    """The page says how many segments were searched, and that the command searches all."""
    part = SearchResult(segments=2_000, searched_segments=30)
    assert journey.format_partial_search(part).startswith("Of 2,000 stored segments the newest 30 were searched")
    assert "none of the 30 segments that were searched" in journey.format_nothing_found("7", part)
    assert (
        journey.format_nothing_found("7", SearchResult(errors=("x",)))
        == "Nothing is kept of '7': not among the lost ids."
    )
    assert journey.format_partial_search(SearchResult(segments=2, searched_segments=2)) == ""
    keys = [JourneyKey("orders", number, pack_ids(7)) for number in range(journey.MAX_WINDOWS + 3)]
    assert journey.format_older(keys) == "3 older windows have messages of this id too."
    assert journey.format_older(keys[:1]) == ""
