"""Nodes that only count, computed by hand: of each case the model and the product say the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.model.record import FILTERED, Body
from tests.model.spool_writer import Row, SpoolWriter, came, passed
from tests.support.counted_minutes import HORIZON_S, counted, counts, judged, packet, part, tells

CHAIN = {"path": "a -> n -> b", "stamps": {"n": "count"}}
FIRST = {"path": "n -> b", "stamps": {"n": "count"}}
LAST = {"path": "a -> n", "stamps": {"n": "count"}}


Case = Callable[[SpoolWriter], None]


def _same(hand: SpoolWriter) -> None:
    counted(hand, counts(1, 2))
    tells(hand, "b", 1, 2)


def _same_in_parts_that_come_late_twice_and_in_another_order(hand: SpoolWriter) -> None:
    hand.say("n", 2, 200, other=packet(counts(3)))
    hand.say("n", 1, 100, other=packet(counts(2)))
    hand.say("n", 0, 30, other=packet(counts(1)))
    hand.say("n", 1, 205, other=packet(counts(9, 10)))
    hand.say("n", 3, HORIZON_S, minute=3)
    tells(hand, "b", 1, 2, 3)


def _same_of_two_instances(hand: SpoolWriter) -> None:
    counted(hand, counts(1))
    counted(hand, counts(2, 3), probe="q")
    tells(hand, "b", 1, 2, 3)


def _lost_inside(hand: SpoolWriter) -> None:
    counted(hand, counts(1, 2, 3), part("OUT", 2, [1, 2]))
    tells(hand, "b", 1, 2)


def _filtered_inside(hand: SpoolWriter) -> None:
    counted(hand, counts(1, 2, 3), part("OUT", 2, [1, 2]), part("FILTERED", 1, [3]))
    tells(hand, "b", 1, 2)


def _waiting_inside(hand: SpoolWriter) -> None:
    counted(hand, counts(1, 2, 3), part("OUT", 2, [1, 2]), part("DEFERRED", 1, [3]))
    tells(hand, "b", 1, 2)


def _nothing_but_filtered(hand: SpoolWriter) -> None:
    counted(hand, counts(), part("FILTERED", 1, [3]))
    tells(hand, "b")


def _equal_counts(hand: SpoolWriter) -> None:
    counted(hand, part("IN", 2))
    tells(hand, "b", 1, 2)


def _equal_counts_of_others(hand: SpoolWriter) -> None:
    counted(hand, counts(1, 1))
    tells(hand, "b", 1, 2)


def _half_without_a_fingerprint(hand: SpoolWriter) -> None:
    counted(hand, counts(1), part("IN", 1))
    tells(hand, "b", 1, 2)


def _same_with_a_hole(hand: SpoolWriter) -> None:
    hand.say("n", 0, 30, other=packet(counts(1, 2)))
    hand.say("n", 2, HORIZON_S, minute=3)
    tells(hand, "b", 1, 2)


def _same_but_one_instance_is_behind(hand: SpoolWriter) -> None:
    counted(hand, counts(1, 2))
    counted(hand, probe="q", until_s=100)
    tells(hand, "b", 1, 2)


def _nobody_counts(hand: SpoolWriter) -> None:
    tells(hand, "b", 1, 2)


def _counts_alone(hand: SpoolWriter) -> None:
    counted(hand, counts(1, 2))


def _nothing_counted(hand: SpoolWriter) -> None:
    counted(hand)
    tells(hand, "b")


def _nothing_seen(hand: SpoolWriter) -> None:
    counted(hand, counts(1))
    tells(hand, "b")


def _ids_from_who_counts(hand: SpoolWriter) -> None:
    counted(hand, counts(1, 2))
    hand.say("n", 2, HORIZON_S + 1, passed(3))
    hand.say("n", 3, HORIZON_S + 2, minute=3)
    tells(hand, "b", 1, 2)


def _counts_from_who_has_ids(hand: SpoolWriter) -> None:
    counted(hand, counts(1, 2))
    tells(hand, "b", 1, 2, until_s=100)
    hand.say("b", 2, 101, other=packet(counts(3)))
    hand.say("b", 3, HORIZON_S, minute=3)


BEHIND: dict[str, tuple[Case, str, bool | None, int]] = {
    "the same": (_same, "CLEAN", True, 2),
    "the same, in parts": (_same_in_parts_that_come_late_twice_and_in_another_order, "CLEAN", True, 3),
    "the same, of two": (_same_of_two_instances, "CLEAN", True, 3),
    "the same left, and one stayed": (_lost_inside, "UNKNOWN", True, 3),
    "the same left, and one was filtered": (_filtered_inside, "CLEAN", True, 3),
    "the same left, and one waits": (_waiting_inside, "UNKNOWN", True, 3),
    "one was filtered that never came": (_nothing_but_filtered, "UNKNOWN", True, 0),
    "as many, without a fingerprint": (_equal_counts, "UNKNOWN", None, 2),
    "as many, one of them twice": (_equal_counts_of_others, "UNKNOWN", False, 2),
    "half without a fingerprint": (_half_without_a_fingerprint, "UNKNOWN", None, 2),
    "the same, and a hole": (_same_with_a_hole, "UNKNOWN", True, 2),
    "the same, and one is behind": (_same_but_one_instance_is_behind, "UNKNOWN", True, 2),
    "nobody": (_nobody_counts, "UNKNOWN", False, 0),
    "only counts": (_counts_alone, "UNKNOWN", False, 2),
    "nothing": (_nothing_counted, "IDLE", True, 0),
    "what nobody saw": (_nothing_seen, "UNKNOWN", False, 1),
    "ids from who counts": (_ids_from_who_counts, "UNKNOWN", True, 2),
    "counts from who has ids": (_counts_from_who_has_ids, "UNKNOWN", True, 2),
}


@pytest.mark.parametrize(("case", "verdict", "is_same", "arrived"), BEHIND.values(), ids=BEHIND)
def test_what_is_counted_first_is_compared_with_what_is_seen_behind(
    case: Case,
    verdict: str,
    is_same: bool | None,  # noqa: FBT001 - a fact of the table
    arrived: int,
    tmp_path: Path,
) -> None:
    """CLEAN only by equal fingerprints and whole books; never LOSSY, whatever is missing behind."""
    hand = SpoolWriter(tmp_path / "spool", FIRST)
    case(hand)
    window = judged(hand, tmp_path)
    (found,) = window["counts"]
    assert (window["verdict"], found["same_behind"], found["arrived"]) == (verdict, is_same, arrived)
    assert (found["before"], found["same_before"], found["lost_before_lower"], found["behind"]) == (None, None, 0, "b")


def _fewer(hand: SpoolWriter) -> None:
    tells(hand, "a", 1, 2, 3)
    counted(hand, part("IN", 1))


def _fewer_though_twice(hand: SpoolWriter) -> None:
    tells(hand, "a", 1, 2, 3)
    counted(hand, part("IN", 1), part("OUT", 2))


def _fewer_and_behind(hand: SpoolWriter) -> None:
    tells(hand, "a", 1, 2, 3)
    counted(hand, part("IN", 1), until_s=HORIZON_S - 0.001)


def _fewer_and_dropped(hand: SpoolWriter) -> None:
    tells(hand, "a", 1, 2, 3)
    counted(hand, part("IN", 1), other=hand.drop(1))


def _fewer_and_ids_incomplete(hand: SpoolWriter) -> None:
    tells(hand, "a", 1, 2, 3, until_s=100)
    counted(hand, part("IN", 1))


def _fewer_and_implausible(hand: SpoolWriter) -> None:
    tells(hand, "a", 1, 2, 3)
    hand.say("n", 0, 30, other=packet(part("IN", 1)))
    hand.say("n", 1, 40, minute=20, other=packet(part("IN", 1)))
    hand.say("n", 2, HORIZON_S, minute=3)


def _all(hand: SpoolWriter) -> None:
    tells(hand, "a", 1, 2, 3)
    counted(hand, counts(3, 2, 1))


def _more(hand: SpoolWriter) -> None:
    tells(hand, "a", 1, 2)
    counted(hand, part("IN", 2**63 - 1), part("IN", 2**63 - 1))


BEFORE: dict[str, tuple[Case, str, bool | None, int]] = {
    "fewer": (_fewer, "LOSSY", None, 2),
    "fewer, by the most of two stamps": (_fewer_though_twice, "LOSSY", None, 1),
    "fewer, and behind": (_fewer_and_behind, "UNKNOWN", None, 0),
    "fewer, and a drop": (_fewer_and_dropped, "UNKNOWN", None, 0),
    "fewer, and ids incomplete": (_fewer_and_ids_incomplete, "UNKNOWN", None, 0),
    "fewer, and one of no window": (_fewer_and_implausible, "LOSSY", None, 1),
    "all": (_all, "CLEAN", True, 0),
    "more than the wire can tell": (_more, "UNKNOWN", None, 0),
}


@pytest.mark.parametrize(("case", "verdict", "is_same", "lower"), BEFORE.values(), ids=BEFORE)
def test_what_is_counted_last_bounds_what_was_lost_before_it(
    case: Case,
    verdict: str,
    is_same: bool | None,  # noqa: FBT001 - a fact of the table
    lower: int,
    tmp_path: Path,
) -> None:
    """Only with whole books of both is anything lost by count, and only what nothing else explains."""
    hand = SpoolWriter(tmp_path / "spool", LAST)
    case(hand)
    window = judged(hand, tmp_path)
    (found,) = window["counts"]
    assert (window["verdict"], found["same_before"], found["lost_before_lower"]) == (verdict, is_same, lower)
    assert (found["same_behind"], found["behind"], found["seen_behind"]) == (None, None, None)
    assert (found["arrived"] <= 2**63 - 1, window["lost"]) == (True, 0)


BETWEEN: dict[str, tuple[list[Body], list[int], str, int, int]] = {
    "all came through": ([part("IN", 1)], [1, 2, 3], "CLEAN", 0, 0),
    "lost before": ([part("IN", 1)], [1], "LOSSY", 2, 2),
    "lost behind": ([part("IN", 3)], [1], "LOSSY", 0, 2),
    "some before, some behind": ([part("IN", 2)], [1], "LOSSY", 1, 2),
    "filtered": ([part("IN", 3), part("OUT", 1), part("FILTERED", 2)], [1], "UNKNOWN", 0, 0),
    "one filtered": ([part("IN", 3), part("OUT", 2), part("FILTERED", 1)], [1], "LOSSY", 0, 1),
}


@pytest.mark.parametrize(("parts", "came", "verdict", "before", "by_ids"), BETWEEN.values(), ids=BETWEEN)
def test_between_two_nodes_with_ids_counts_say_where(
    parts: list[Body], came: list[int], verdict: str, before: int, by_ids: int, tmp_path: Path
) -> None:
    """Ids say how much is lost, less what was stopped where nobody knows ids; counts say where."""
    hand = SpoolWriter(tmp_path / "spool", CHAIN)
    tells(hand, "a", 1, 2, 3)
    counted(hand, *parts)
    tells(hand, "b", *came)
    window = judged(hand, tmp_path)
    (found,) = window["counts"]
    assert (window["verdict"], found["lost_before_lower"], window["lost_lower"]) == (verdict, before, by_ids)
    assert window["nodes"][1]["lost_in_transit"] == 3 - len(came)


def test_a_silent_counting_node_between_two_leaves_a_loss_unsure(tmp_path: Path) -> None:
    """Nobody knows whether it stopped the message on purpose."""
    hand = SpoolWriter(tmp_path / "spool", CHAIN)
    tells(hand, "a", 1, 2)
    tells(hand, "b", 1)
    window = judged(hand, tmp_path)
    assert (window["verdict"], window["lost"], window["lost_lower"]) == ("UNKNOWN", 1, 0)


def test_two_counting_nodes_in_a_row_are_compared_with_the_ids_beside_them(tmp_path: Path) -> None:
    """Each with the same neighbours, past the other."""
    hand = SpoolWriter(tmp_path / "spool", {"path": "a -> n -> m -> b", "stamps": {"n": "count", "m": "count"}})
    tells(hand, "a", 1, 2, 3)
    counted(hand, counts(1, 2, 3))
    hand.say("m", 0, 30, other=packet(counts(1, 2)))
    hand.say("m", 1, HORIZON_S, minute=3)
    tells(hand, "b", 1)
    window = judged(hand, tmp_path)
    assert [(one["node"], one["lost_before_lower"], one["same_before"]) for one in window["counts"]] == [
        ("n", 0, True),
        ("m", 1, False),
    ]


def test_what_an_earlier_counting_node_stopped_is_not_lost_before_a_later_one(tmp_path: Path) -> None:
    """Messages that the first filtered explain as many at the second; while it is silent, all of them."""
    path = {"path": "a -> n -> m -> b", "stamps": {"n": "count", "m": "count"}}
    lower = []
    for case, parts in enumerate(([counts(1, 2, 3), part("FILTERED", 1, [3])], [])):
        folder = tmp_path / str(case)
        folder.mkdir()
        hand = SpoolWriter(folder / "spool", path)
        tells(hand, "a", 1, 2, 3)
        if parts:
            counted(hand, *parts)
        hand.say("m", 0, 30, other=packet(counts(1)))
        hand.say("m", 1, HORIZON_S, minute=3)
        tells(hand, "b", 1)
        lower.append([one["lost_before_lower"] for one in judged(hand, folder)["counts"]])
    assert lower == [[0, 1], [0, 0]]


def _may_have_stopped(hand: SpoolWriter) -> None:
    tells(hand, "a", 1, 2)
    counted(hand, part("IN", 2), part("FILTERED", 1))
    tells(hand, "b", 1)


REASONS: dict[str, tuple[dict[str, Any], Case, str]] = {
    "lost": (LAST, _fewer, "n: at least 2 of 3 messages that left a were not counted, by count"),
    "nobody": (FIRST, _nobody_counts, "n: no probe instance was heard; nothing was counted"),
    "a hole": (FIRST, _same_with_a_hole, "n: 1 of 1 probe instances did not tell all that they counted"),
    "equal counts": (FIRST, _equal_counts, "n: 2 messages by count, 2 by ids at b: counts alone prove no delivery"),
    "others": (
        FIRST,
        _equal_counts_of_others,
        "n: 2 messages by count, 2 by ids at b: the messages are not the same, by fingerprint",
    ),
    "stopped": (
        CHAIN,
        _may_have_stopped,
        "n: up to 1 messages may have ended there on purpose, by count; what is missing at b may be among them",
    ),
    "inside": (FIRST, _lost_inside, "n: 2 messages by count, 2 by ids at b: not all that came is shown to have left"),
}


@pytest.mark.parametrize(("table", "case", "reason"), REASONS.values(), ids=REASONS)
def test_a_window_says_what_counts_show_or_why_they_show_nothing(
    table: dict[str, Any], case: Case, reason: str, tmp_path: Path
) -> None:
    """One of its reasons, so that it stands in report, pages and alerts."""
    hand = SpoolWriter(tmp_path / "spool", table)
    case(hand)
    assert reason in judged(hand, tmp_path)["reasons"]


def test_servers_are_told_apart(tmp_path: Path) -> None:
    """By the names of their probes, whatever ran under one name added."""
    hand = SpoolWriter(tmp_path / "spool", FIRST)
    counted(hand, counts(1, 2), probe="server-7")
    counted(hand, counts(3), probe="server-8")
    hand.say("n", 0, 50, other=packet(counts(4), probe="server-7", epoch_us=(1_767_261_600 + 40) * 1_000_000))
    (found,) = judged(hand, tmp_path)["counts"]
    assert [(one["probe"], one["count"], one["seen_behind"]) for one in found["servers"]] == [
        ("server-7", 3, None),
        ("server-8", 1, None),
    ]


def stamps(hand: SpoolWriter, node: str, probe: str, rows: Sequence[Row]) -> None:
    """Have a probe of that name send observations, and complete the window."""
    hand.say(node, 0, 30, rows, other={"probe": probe})
    hand.say(node, 1, HORIZON_S, minute=3, other={"probe": probe})


HOSTILE = ("n" * 128, "a\nCLEAN", "nul\0", "<b>[red]{x}", "\u2400\U0001f600")


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_the_packet_of_a_server_its_file_and_the_messages_that_are_not_in_it(name: str, tmp_path: Path) -> None:
    """By the name of its probes, whatever that is; another server is the same by fingerprint, a third has no file."""
    hand = SpoolWriter(tmp_path / "spool", CHAIN)
    for probe, ids, there in ((name, (1, 2, 3, 4), (4,)), ("server-8", (5, 6), (5, 6)), ("server-9", (7,), ())):
        stamps(hand, "a", probe, passed(*ids))
        counted(hand, counts(*ids), probe=probe)
        if there:
            stamps(hand, "b", probe, passed(*there))
    window = judged(hand, tmp_path)
    servers = {one.pop("probe"): tuple(one.values()) for one in map(dict, window["counts"][0]["servers"])}
    missing = tuple(f"{number:032x}" for number in (1, 2, 3))
    assert servers == {
        name: (4, 4, 4, True, 1, False, 3, missing),
        "server-8": (2, 2, 2, True, 2, True, 0, ()),
        "server-9": (1, 1, 1, True, None, None, 1, (f"{7:032x}",)),
    }
    assert (window["verdict"], window["lost_lower"]) == ("LOSSY", 4)


@pytest.mark.parametrize(("said", "lower"), [([], 0), ([part("IN", 0)], 2)], ids=["nothing", "none"])
@pytest.mark.parametrize("table", [CHAIN, LAST], ids=["between", "last"])
def test_what_left_by_a_server_that_counted_nothing_is_not_surely_lost(
    said: list[Body], lower: int, table: dict[str, Any], tmp_path: Path
) -> None:
    """A server may be cut off, and count them yet or say that it filtered them; one that counted 0 has said so."""
    hand = SpoolWriter(tmp_path / "spool", table)
    for probe, ids in (("server-7", (1,)), ("server-8", (2, 3))):
        stamps(hand, "a", probe, passed(*ids))
    counted(hand, counts(1), probe="server-7")
    for part_of_8 in said:
        counted(hand, part_of_8, probe="server-8")
    if table is CHAIN:
        tells(hand, "b", 1)
    window = judged(hand, tmp_path)
    assert window["counts"][0]["lost_before_lower"] == lower
    assert window["lost_lower"] == (lower if table is CHAIN else 0)
    assert window["verdict"] == ("LOSSY" if lower else "UNKNOWN")


def test_a_renamed_server_is_two_and_nothing_is_lost_by_it(tmp_path: Path) -> None:
    """Its packet has no file, and its file no packet: counts of one name are compared with ids of that name alone."""
    hand = SpoolWriter(tmp_path / "spool", FIRST)
    for probe, file in (("server-7", "server-07"), ("server-8", "server-8")):
        counted(hand, counts(7 if probe == "server-7" else 8), probe=probe)
        stamps(hand, "b", file, passed(7 if probe == "server-7" else 8))
    window = judged(hand, tmp_path)
    servers = [(one["probe"], one["count"], one["seen_behind"]) for one in window["counts"][0]["servers"]]
    assert servers == [("server-07", None, 1), ("server-7", 1, None), ("server-8", 1, 1)]
    assert (window["verdict"], window["counts"][0]["same_behind"]) == ("CLEAN", True)


@pytest.mark.parametrize(
    ("file", "server"),
    [
        ("server-7-0123456789abcdef", "server-7"),
        ("server-7-0123456789abcdeg", None),
        ("-0123456789abcdef", None),
        ("server-7-0123456789abcdef\n", None),
    ],
)
def test_an_imported_file_has_the_name_of_its_server(file: str, server: str | None, tmp_path: Path) -> None:
    """Its probe ends in the print of the file, which is no part of the server's name; two files of one add up."""
    hand = SpoolWriter(tmp_path / "spool", CHAIN)
    counted(hand, counts(1, 2, 3), probe="server-7")
    stamps(hand, "a", file, passed(1, 2, 3))
    stamps(hand, "a", "server-7", passed(3))
    stamps(hand, "b", file, passed(1))
    stamps(hand, "b", "server-7-fedcba9876543210", passed(2))
    window = judged(hand, tmp_path)
    told = {one["probe"]: one for one in window["counts"][0]["servers"]}
    assert (file in told) == (server is None)
    one = told["server-7"]
    assert (one["count"], one["left_before"], one["seen_behind"]) == ((3, 3, 2) if server else (3, 1, 1))
    missing = [f"{3:032x}"]
    assert (one["missing_behind"], list(one["missing_ids"])) == (1, missing)


def test_all_files_of_a_server_are_one(tmp_path: Path) -> None:
    """An import names each by its print, too: a message that is in two of them is one, and one in none is missing."""
    hand = SpoolWriter(tmp_path / "spool", CHAIN)
    for ending, ids in (("-00000000000000aa", (1, 2)), ("-00000000000000bb", (2, 3))):
        stamps(hand, "a", f"server-7{ending}", passed(*ids))
    counted(hand, counts(1, 2, 3), probe="server-7")
    for ending, there in (("-0123456789abcdef", [1]), ("-fedcba9876543210", [1, 3]), ("-FEDCBA9876543210", [3])):
        stamps(hand, "b", f"server-7{ending}", passed(*there))
    server, other = judged(hand, tmp_path)["counts"][0]["servers"]
    assert tuple(server.values()) == ("server-7", 3, 3, 3, True, 2, False, 1, (f"{2:032x}",))
    assert (other["probe"], other["seen_behind"]) == ("server-7-FEDCBA9876543210", 1)


def test_messages_that_one_node_passes_on_and_another_stamps_on_arrival_are_told_by_who_let_them_go(
    tmp_path: Path,
) -> None:
    """A message that a server filtered or kept did not leave it; at a node of one side any stamp is a departure."""
    for case, sides, left in (("both", {}, 1), ("in", {"a": "in"}, 3)):
        folder = tmp_path / case
        folder.mkdir()
        hand = SpoolWriter(folder / "spool", CHAIN | {"stamps": {"n": "count"} | sides})
        stamps(hand, "a", "p", [*came(1, 2), Row(3, outcome=FILTERED), *passed(4)])
        counted(hand, counts(4))
        (server,) = judged(hand, folder)["counts"][0]["servers"]
        assert (server["left_before"], server["missing_behind"]) == (left, left)
