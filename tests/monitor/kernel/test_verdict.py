"""Tests of the verdict: the five of them in order, their bounds, and what else is said of a window."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from hopwatch.monitor.kernel.tally import Tally, build_tally, instance_name
from hopwatch.monitor.kernel.verdict import WindowStage, conclude_window
from hopwatch.monitor.kernel.window import WindowPolicy
from hopwatch.monitor.pathway import Pathway
from hopwatch.monitor.results import Quantiles, Status, Verdict, WindowResult
from hopwatch.probes.contract.batch import Outcome
from hopwatch.probes.contract.ids import id_bytes
from tests.support.batch_arrays import complete_books, make_batch, message_batches

END_US = 60
TERMS = WindowPolicy(150, 30, 3_600, 86_400)
PASSED, LOST_AT_B, STUCK_IN_B = "io io", "io -", "io i"


class Facts(NamedTuple):
    """Facts of a verdict; bounds by node as lower/upper, ? for unknown."""

    verdict: Verdict
    lost: int
    lower: int
    upper: int | None
    nodes: str
    reasons: tuple[str, ...] = ()


def concluded(path: str | list[str], ways: tuple[str, ...], of_books: tuple[str, ...]) -> WindowResult:
    """Judge a final window in which these messages were seen and the books say this."""
    pathway = Pathway.parse(path)
    tally = build_tally(pathway, message_batches(*ways), END_US)
    return conclude_window(pathway, WindowStage("orders", 0, Status.FINAL), tally, complete_books(*of_books))


def facts(result: WindowResult) -> Facts:
    """Return what the verdict rests on."""
    assert result.verdict is not None
    nodes = " ".join(
        f"{node.loss_lower}/{'?' if node.loss_upper is None else node.loss_upper}" for node in result.nodes
    )
    return Facts(result.verdict, result.lost, result.lost_lower, result.lost_upper, nodes, result.reasons)


HID = "what a hole hid has no number"
UNTOLD = f"1 of 1 probe instances did not tell all; {HID}, and a loss here may belong further down"
UNHEARD = f"no probe instance was heard; {HID}"
NOBODY = ("no probe instance was heard at any node",)
A_HOLE, B_HOLE, A_DROPS = (f"a: {UNTOLD}",), (f"b: {UNTOLD}",), ("a: its probes dropped 3 observations",)
A_OF_TWO, B_OF_TWO = (f"{node}: {UNTOLD.replace('of 1', 'of 2')}" for node in "ab")

SILENT, IDLE, LOSSY, CLEAN, UNKNOWN = Verdict

VERDICTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Facts]] = {
    # 1. Nobody was heard.
    "nobody": ((), ("-", "-"), Facts(SILENT, 0, 0, None, "0/? 0/?", NOBODY)),
    "only the silent": ((), ("s", "ss"), Facts(SILENT, 0, 0, None, "0/? 0/?", NOBODY)),
    # 2. No message came in, and the origin says so.
    "idle": ((), ("c", "c"), Facts(IDLE, 0, 0, 0, "0/0 0/0")),
    "idle, b has a hole": ((), ("c", "h"), Facts(IDLE, 0, 0, 0, "0/0 0/?")),
    "quiet, a has a hole": ((), ("h", "c"), Facts(UNKNOWN, 0, 0, None, "0/? 0/0", A_HOLE)),
    "quiet, a dropped": ((), ("d", "c"), Facts(UNKNOWN, 0, 0, 3, "0/3 0/0", A_DROPS)),
    "quiet, nobody at a": ((), ("-", "c"), Facts(UNKNOWN, 0, 0, None, "0/? 0/0", (f"a: {UNHEARD}",))),
    # 3. A loss is shown.
    "lost on the way to b": ((PASSED, LOST_AT_B), ("c", "c"), Facts(LOSSY, 1, 1, 1, "0/0 1/1")),
    "lost, a has a hole": ((PASSED, LOST_AT_B), ("h", "c"), Facts(LOSSY, 1, 1, None, "0/? 1/1", A_HOLE)),
    "lost, a dropped": ((LOST_AT_B,), ("d", "c"), Facts(LOSSY, 1, 1, 4, "0/3 1/1", A_DROPS)),
    "lost inside b": ((STUCK_IN_B,), ("c", "c"), Facts(LOSSY, 1, 1, 1, "0/0 1/1")),
    # 4. No room for a loss is left.
    "clean": ((PASSED, "io ir", "if -"), ("c", "c"), Facts(CLEAN, 0, 0, 0, "0/0 0/0")),
    "clean, two instances each": ((PASSED,), ("cc", "cc"), Facts(CLEAN, 0, 0, 0, "0/0 0/0")),
    "clean, b has a hole": ((PASSED,), ("c", "h"), Facts(CLEAN, 0, 0, 0, "0/0 0/?")),
    "clean, nobody at b": ((PASSED,), ("c", "-"), Facts(CLEAN, 0, 0, 0, "0/0 0/?")),
    # 5. Neither can be shown.
    "missing at b with a hole": ((PASSED, LOST_AT_B), ("c", "h"), Facts(UNKNOWN, 1, 0, 1, "0/0 0/?", B_HOLE)),
    "missing at b, half a hole": ((LOST_AT_B,), ("c", "ch"), Facts(UNKNOWN, 1, 0, 1, "0/0 0/?", (B_OF_TWO,))),
    "missing at b, which dropped": (
        (LOST_AT_B,),
        ("c", "d"),
        Facts(UNKNOWN, 1, 0, 1, "0/0 0/4", ("b: its probes dropped 3 observations",)),
    ),
    "missing at b, unheard": ((LOST_AT_B,), ("c", "s"), Facts(UNKNOWN, 1, 0, 1, "0/0 0/?", (f"b: {UNHEARD}",))),
    "all there, a has a hole": ((PASSED,), ("h", "c"), Facts(UNKNOWN, 0, 0, None, "0/? 0/0", A_HOLE)),
    "all there, a dropped": ((PASSED,), ("d", "c"), Facts(UNKNOWN, 0, 0, 3, "0/3 0/0", A_DROPS)),
    "a hole and drops": ((PASSED,), ("dh", "c"), Facts(UNKNOWN, 0, 0, None, "0/? 0/0", (A_OF_TWO, *A_DROPS))),
}


@pytest.mark.parametrize(("ways", "of_books", "told"), VERDICTS.values(), ids=VERDICTS)
def test_the_verdict_and_what_it_rests_on(ways: tuple[str, ...], of_books: tuple[str, ...], told: Facts) -> None:
    """On a chain of two, in the order in which SEMANTICS.md judges."""
    assert facts(concluded("a -> b", ways, of_books)) == told


BRANCH = "a -> b | c"
BOTH = "a -> b & c"

PARTING: dict[str, tuple[str | list[str], str, tuple[str, ...], tuple[Verdict, int, int | None, str]]] = {
    "one of two, both can tell": (BRANCH, "io - -", ("c", "c", "c"), (LOSSY, 1, 1, "1/1 0/0 0/0")),
    "one of two, b cannot tell": (BRANCH, "io - -", ("c", "h", "c"), (UNKNOWN, 0, 1, "0/1 0/? 0/0")),
    "one of two, a cannot tell": (BRANCH, "io - -", ("h", "c", "c"), (UNKNOWN, 0, None, "0/? 0/0 0/0")),
    "both, and c lost it": (BOTH, "io io -", ("c", "c", "c"), (LOSSY, 1, 1, "0/0 0/0 1/1")),
    "both, and both lost it": (BOTH, "io - -", ("c", "c", "c"), (LOSSY, 1, 1, "0/0 1/1 1/1")),
    "both lost it, b cannot tell": (BOTH, "io - -", ("c", "h", "c"), (LOSSY, 0, 1, "0/0 0/? 1/1")),
    "both, and c cannot tell": (BOTH, "io io -", ("c", "c", "h"), (UNKNOWN, 0, 1, "0/0 0/0 0/?")),
    "lost behind a part that cannot tell": (
        "a -> b -> c & d",
        "io - io -",
        ("c", "h", "c", "c"),
        (UNKNOWN, 0, None, "0/0 0/? 0/0 0/0"),
    ),
    "lost behind a part that dropped": (
        "a -> b -> c & d",
        "io - io -",
        ("c", "d", "c", "c"),
        (UNKNOWN, 0, 3, "0/0 0/3 0/0 0/0"),
    ),
    "passed before a part, untold": (
        "a -> b -> c & d",
        "io - io io",
        ("c", "h", "c", "c"),
        (UNKNOWN, 0, None, "0/0 0/? 0/0 0/0"),
    ),
    "passed behind a part, untold": (
        "a -> b & c -> d",
        "io - io io",
        ("c", "h", "c", "c"),
        (CLEAN, 0, 0, "0/0 0/? 0/0 0/0"),
    ),
    "two groups, one lost it": (
        ["a -> b | c", "a -> d | e"],
        "io io - - -",
        ("c", "c", "c", "c", "c"),
        (LOSSY, 1, 1, "1/1 0/0 0/0 0/0 0/0"),
    ),
    "two groups, d cannot tell": (
        ["a -> b | c", "a -> d | e"],
        "io io - - -",
        ("c", "c", "c", "h", "c"),
        (UNKNOWN, 0, 1, "0/1 0/0 0/0 0/? 0/0"),
    ),
    "two groups, one shows it, d cannot tell": (
        ["a -> b | c", "a -> d | e"],
        "io - - - -",
        ("c", "c", "c", "h", "c"),
        (LOSSY, 0, 1, "1/1 0/0 0/0 0/? 0/0"),
    ),
    "two origins, one cannot tell": (
        ["a -> c", "b -> c"],
        "io - io",
        ("c", "h", "c"),
        (UNKNOWN, 0, None, "0/0 0/? 0/0"),
    ),
    "an orphan of an unheard origin": ("a -> b", "- io", ("s", "c"), (UNKNOWN, 0, None, "0/? 0/0")),
}


@pytest.mark.parametrize(("path", "way", "of_books", "told"), PARTING.values(), ids=PARTING)
def test_where_ways_part_a_loss_needs_more_books(
    path: str | list[str], way: str, of_books: tuple[str, ...], told: tuple[Verdict, int, int | None, str]
) -> None:
    """Behind a branch those of all its sides; and end to end, where a node sends to several, those of all terminals."""
    result = facts(concluded(path, (way,), of_books))
    assert (result.verdict, result.lower, result.upper, result.nodes) == told


@pytest.mark.parametrize(("instances", "lower"), [(("p", "q"), 0), (("p", "p"), 1)])
def test_what_another_instance_may_have_handled_by_another_name_is_unsure_and_the_reason_says_so(
    instances: tuple[str, str], lower: int
) -> None:
    """A node alone deferred 1, and 101 came and left: at another instance that may be the same message."""
    kept = make_batch(0, [id_bytes(1)], [10], [None], [Outcome.DEFERRED])
    sent_on = make_batch(0, [id_bytes(101)], [10], [30])
    batches = [
        one._replace(instance=instance_name("a", name, 0)) for one, name in zip((kept, sent_on), instances, strict=True)
    ]
    pathway = Pathway.parse(["a"])
    tally = build_tally(pathway, batches, END_US, TERMS)
    told = conclude_window(
        pathway, WindowStage("orders", 0, Status.FINAL), tally, complete_books("c" * len({*instances}))
    )
    said = "a: 1 messages were deferred, and another instance may have handled them under other ids: "
    assert (told.lost, told.deferred, told.lost_lower, told.nodes[0].loss_lower) == (1, 1, lower, lower)
    assert told.reasons == (() if lower else (f"{said}do the nodes use one type of id?",))


def test_the_worked_example() -> None:
    """Every figure of the table: 10, 9, 7, 5 seen, 0, 1, 2, 2 lost, and one half end to end."""
    ways = ["io io io io"] * 5 + ["io io io -"] * 2 + ["io io - -"] * 2 + ["io - - -"]
    result = concluded("node1 -> node2 -> node3 -> node4", tuple(ways), ("c",) * 4)
    assert [node.seen for node in result.nodes] == [10, 9, 7, 5]
    assert [node.loss for node in result.nodes] == [0, 1, 2, 2]
    assert [node.loss_ratio for node in result.nodes] == [0, 1 / 10, 2 / 9, 2 / 7]
    assert (result.known, result.delivered, result.lost, result.loss_ratio) == (10, 5, 5, 0.5)
    assert (result.verdict, result.lost_lower, result.lost_upper) == (Verdict.LOSSY, 5, 5)


def test_every_figure_of_a_node() -> None:
    """Of eight messages at the middle of a chain: where each of them is counted."""
    ways = ("io io io", "io i -", "io - -", "io if -", "io ir -", "io - io", "- io io", "io io -")
    node = concluded("a -> b -> c", ways, ("c", "c", "c")).nodes[1]
    assert (node.node, node.expected, node.seen, node.arrived, node.departed) == ("b", 7, 6, 6, 3)
    assert (node.filtered, node.rejected, node.unobserved, node.orphans) == (1, 1, 1, 1)
    assert (node.lost_in_transit, node.lost_inside, node.lost_after, node.loss) == (1, 1, 0, 2)
    assert (node.loss_lower, node.loss_upper, node.loss_ratio) == (2, 2, 2 / 8)
    assert (node.in_flight, node.dropped, node.coverage) == (0, 0, 1.0)


def test_every_figure_end_to_end() -> None:
    """Of eight messages: where each of them ended; rejected, sent again and filtered further down is filtered."""
    ways = ("io io", "io if", "io ir", "if -", "io -", "- io", "i -", "ir if")
    result = concluded("a -> b", ways, ("c", "c"))
    assert (result.known, result.delivered, result.filtered, result.rejected, result.lost) == (8, 2, 3, 1, 2)
    assert result.loss_ratio == 2 / 8


@pytest.mark.parametrize(("before_us", "lost", "partial", "in_flight"), [(71, 3, 2, 0), (70, 0, 0, 3)])
def test_those_of_the_lost_that_left_a_terminal_are_counted_beside(
    before_us: int, lost: int, partial: int, in_flight: int
) -> None:
    """Of five messages that are owed to b and c, two left b alone and one came to none; only the judged ones count."""
    pathway = Pathway.parse("a -> b & c")
    ways = ("io io io", "io io -", "io io i", "io - -", "io if if")
    tally = build_tally(pathway, message_batches(*ways, arrival_us=70), END_US)
    standing = WindowStage("orders", 0, Status.FINAL, settled_before_us=before_us)
    result = conclude_window(pathway, standing, tally, complete_books("c", "c", "c"))
    assert (result.known, result.delivered, result.filtered) == (5, 1, 1)
    assert (result.lost, result.partial, result.in_flight) == (lost, partial, in_flight)


def test_what_is_empty_has_no_ratio() -> None:
    """Null, not 0: of nothing expected and nobody with a say."""
    result = concluded("a -> b", (), ("c", "-"))
    assert (result.loss_ratio, result.nodes[0].loss_ratio, result.nodes[1].coverage) == (None, None, None)
    assert (result.nodes[0].coverage, concluded("a -> b", (), ("chd", "c")).nodes[0].coverage) == (1.0, 1 / 3)


def test_duplicates_are_counted_for_both_sides() -> None:
    """Observations less distinct ids, for in and out apart."""
    pathway = Pathway.parse("a")
    ids = [id_bytes(number) for number in (1, 1, 1, 2)]
    tally = build_tally(pathway, [make_batch(0, ids, [5, 5, 5, 5], [6, 6, None, 6])], END_US)
    node = conclude_window(pathway, WindowStage("orders", 0, Status.FINAL), tally, complete_books("c")).nodes[0]
    assert (node.seen, node.duplicates_in, node.duplicates_out) == (2, 2, 1)


def _late(status: Status, **standing: int) -> WindowResult:
    """Judge a window with two messages lost on the way to b; one was first sighted at 70, behind the window's end."""
    pathway = Pathway.parse("a -> b")
    batches = [*message_batches("io io", "io -"), make_batch(0, [id_bytes(9)], [10], [30], arrival_us=70)]
    tally = build_tally(pathway, batches, END_US)
    return conclude_window(pathway, WindowStage("orders", 0, status, **standing), tally, complete_books("c", "c"))


@pytest.mark.parametrize("status", [Status.OPEN, Status.PROVISIONAL])
def test_until_a_window_is_final_nothing_is_lost(status: Status) -> None:
    """A window that is not final has messages in flight, no verdict and no reason; counts and lags stay as they are."""
    result = _late(status)
    assert (result.verdict, result.reasons, result.known, result.delivered) == (None, (), 3, 1)
    assert (result.lost, result.lost_lower, result.lost_upper, result.loss_ratio, result.in_flight) == (0, 0, 0, 0, 2)
    b = result.nodes[1]
    assert (b.lost_in_transit, b.loss, b.loss_lower, b.loss_upper, b.loss_ratio, b.in_flight) == (0, 0, 0, 0, 0, 2)
    assert (b.expected, b.seen, result.lag_us) == (3, 1, Quantiles(1, 30, 30, 30, 30, 30))


def test_until_a_window_is_final_even_holes_are_no_reason() -> None:
    """Bounds that nobody could know later are 0 for now."""
    pathway = Pathway.parse("a -> b")
    tally = build_tally(pathway, message_batches("io -"), END_US)
    result = conclude_window(pathway, WindowStage("orders", 0, Status.PROVISIONAL), tally, complete_books("h", "-"))
    assert (result.lost_upper, [node.loss_upper for node in result.nodes], result.reasons) == (0, [0, 0], ())


SETTLED = {"both are settled": (71, 2, 0), "the late one is in flight": (70, 1, 1), "only the early one": (0, 1, 1)}


@pytest.mark.parametrize(("before_us", "lost", "in_flight"), SETTLED.values(), ids=SETTLED)
@pytest.mark.parametrize("status", [Status.FINAL, Status.AMENDED])
def test_what_was_sighted_late_is_in_flight_for_longer(
    status: Status, before_us: int, lost: int, in_flight: int
) -> None:
    """In a final window too, and bounds speak of what is settled."""
    result = _late(status, settled_before_us=before_us)
    b = result.nodes[1]
    assert (result.lost, result.in_flight, b.loss, b.in_flight) == (lost, in_flight, lost, in_flight)
    assert (result.lost_lower, result.lost_upper, b.loss_lower, b.loss_upper) == (lost,) * 4
    assert result.verdict is Verdict.LOSSY


def test_where_a_window_stands_is_handed_on() -> None:
    """Stream, start, status, revision and what was recovered are the caller's to know."""
    standing = WindowStage("orders", 120_000_000, Status.AMENDED, revision=3, recovered=7)
    pathway = Pathway.parse("a")
    result = conclude_window(pathway, standing, build_tally(pathway, (), END_US), complete_books("c"))
    assert (result.stream, result.window_start_us, result.status) == ("orders", 120_000_000, Status.AMENDED)
    assert (result.revision, result.recovered, result.verdict) == (3, 7, Verdict.IDLE)


def _of_lags(pathway: Pathway, lags_in_us: list[int], lags_out_us: list[int]) -> Tally:
    ids = [id_bytes(number) for number in range(len(lags_in_us))]
    return build_tally(pathway, [make_batch(0, ids, lags_in_us, lags_out_us)], END_US)


def test_lags_are_shown_in_figures() -> None:
    """Both figures for the time inside: the digest of true durations, and the difference of two percentiles."""
    pathway = Pathway.parse("a -> b")
    inward, outward = list(range(100)), list(range(1_000, 2_000, 10))[::-1]
    result = conclude_window(
        pathway, WindowStage("s", 0, Status.FINAL), _of_lags(pathway, inward, outward), complete_books("c", "c")
    )
    a, b = result.nodes
    assert a.lag_in_us == Quantiles(100, 0, 49, 94, 98, 99)
    assert a.lag_out_us == Quantiles(100, 1_000, 1_490, 1_940, 1_980, 1_990)
    assert a.inside_us == Quantiles(100, 901, 1_440, 1_935, 1_979, 1_990)
    assert a.process_duration_p95_us == 1_940 - 94
    assert (b.lag_in_us, b.lag_out_us, b.inside_us, b.process_duration_p95_us, result.lag_us) == (None,) * 5


def test_a_one_sided_node_has_no_time_inside() -> None:
    """Neither figure of it; its one stamp is both lags."""
    pathway = Pathway.parse("a", {"a": "in"})
    tally = build_tally(pathway, [make_batch(0, [id_bytes(1)], [5])], END_US)
    node = conclude_window(pathway, WindowStage("s", 0, Status.FINAL), tally, complete_books("c")).nodes[0]
    assert node.lag_in_us == node.lag_out_us == Quantiles(1, 5, 5, 5, 5, 5)
    assert (node.inside_us, node.process_duration_p95_us) == (None, None)


def test_end_to_end_lag_is_that_of_all_terminals() -> None:
    """The lags out of eu and us together, and of no node before."""
    pathway = Pathway.parse("a -> eu | us")
    tally = build_tally(
        pathway, [make_batch(node, [id_bytes(node)], [1], [10 * node + 5]) for node in range(3)], END_US
    )
    result = conclude_window(pathway, WindowStage("s", 0, Status.FINAL), tally, complete_books("c", "c", "c"))
    assert result.lag_us == Quantiles(2, 15, 15, 25, 25, 25)


MOST = 2**63 - 1


def test_absurd_lags_stay_within_64_bits() -> None:
    """No figure is beyond what was stamped, nor a difference beyond what a store can keep."""
    pathway = Pathway.parse("a")
    tally = _of_lags(pathway, [-MOST], [MOST])
    node = conclude_window(pathway, WindowStage("s", 0, Status.FINAL), tally, complete_books("c")).nodes[0]
    assert node.lag_in_us == Quantiles(1, *[-MOST] * 5)
    assert node.lag_out_us == Quantiles(1, *[MOST] * 5)
    assert node.process_duration_p95_us == MOST
    assert np.int64(node.process_duration_p95_us)
