"""Books, bounds and verdicts, computed by hand: a chain a -> b, the window 10:00, its horizon at 210 s."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.model.record import Body
from tests.model.spool_writer import TEN_S, Row, SpoolWriter, came, deferred, passed, waiting

PAIR = {"path": "a -> b"}
HORIZON_S = 60 + 150
FINAL_S = HORIZON_S + 30
BYE = {"kind": "BYE"}


def tells_all(
    hand: SpoolWriter, node: str, *message_ids: int, until_s: float = HORIZON_S, other: Body | None = None
) -> None:
    """Have a probe send a batch of the window, or a heartbeat, and a heartbeat that completes it."""
    hand.say(node, 0, 30, passed(*message_ids), other=other)
    hand.say(node, 1, until_s, minute=int(until_s // 60))


def _silent(hand: SpoolWriter) -> None:
    hand.say("a", 0, -30, minute=-1, other=BYE)
    hand.say("b", 0, 70, minute=1, other={"epoch_us": (TEN_S + 61) * 1_000_000})


def _idle(hand: SpoolWriter) -> None:
    tells_all(hand, "a")


def _idle_but_an_origin_may_hold_stamps(hand: SpoolWriter) -> None:
    tells_all(hand, "a", until_s=HORIZON_S - 0.001)


def _lossy(hand: SpoolWriter) -> None:
    tells_all(hand, "a", 1, 2)
    tells_all(hand, "b", 1)


def _lossy_by_a_node_alone(hand: SpoolWriter) -> None:
    hand.say("a", 0, 30, [*passed(1), *came(2)])
    hand.say("a", 1, HORIZON_S, minute=3, other=BYE)
    hand.say("b", 0, 30, passed(1))


def _clean(hand: SpoolWriter) -> None:
    tells_all(hand, "a", 1, 2)
    hand.say("b", 0, 30, passed(1, 2))


def _unknown_loss(hand: SpoolWriter) -> None:
    tells_all(hand, "a", 1, 2)
    hand.say("b", 0, 30, passed(1))


def _unknown_origin(hand: SpoolWriter) -> None:
    hand.say("a", 0, 30, passed(1))
    tells_all(hand, "b", 1)


def _unknown_by_drops(hand: SpoolWriter) -> None:
    tells_all(hand, "a", 1, other=hand.drop(3))
    tells_all(hand, "b", 1)


@pytest.mark.parametrize(
    ("verdict", "lower", "upper", "coverage", "case"),
    [
        ("SILENT", 0, None, (None, 0.0), _silent),
        ("IDLE", 0, 0, (1.0, None), _idle),
        ("UNKNOWN", 0, None, (0.0, None), _idle_but_an_origin_may_hold_stamps),
        ("LOSSY", 1, 1, (1.0, 1.0), _lossy),
        ("LOSSY", 1, 1, (1.0, 0.0), _lossy_by_a_node_alone),
        ("CLEAN", 0, 0, (1.0, 0.0), _clean),
        ("UNKNOWN", 0, 1, (1.0, 0.0), _unknown_loss),
        ("UNKNOWN", 0, None, (0.0, 1.0), _unknown_origin),
        ("UNKNOWN", 0, 3, (0.0, 1.0), _unknown_by_drops),
    ],
)
def test_verdicts(
    tmp_path: Path,
    verdict: str,
    lower: int,
    upper: int | None,
    coverage: tuple[float | None, float | None],
    case: Callable[[SpoolWriter], None],
) -> None:
    """Each verdict comes with the bounds and the coverage that it rests on."""
    hand = SpoolWriter(tmp_path, PAIR)
    case(hand)
    window = hand.window()
    assert (window["verdict"], window["lost_lower"], window["lost_upper"]) == (verdict, lower, upper)
    assert tuple(node["coverage"] for node in window["nodes"].values()) == coverage


def test_a_bye_leaves_nothing_open(tmp_path: Path) -> None:
    """After a bye an account is told, however early it came; without one its instance may hold stamps."""
    hand = SpoolWriter(tmp_path, PAIR)
    hand.say("a", 0, 30, passed(1, 2))
    hand.say("a", 1, 40, other=BYE)
    hand.say("b", 0, 30, passed(1))
    hand.say("b", 1, 40)
    assert [node["coverage"] for node in hand.window()["nodes"].values()] == [1.0, 0.0]


@pytest.mark.parametrize(("through_s", "coverage"), [(-600, 0.0), (-600.000001, None)])
def test_a_silent_instance_is_retired_after_ten_minutes(
    tmp_path: Path, through_s: float, coverage: float | None
) -> None:
    """The moment of its retirement is the last at which it may hold stamps."""
    hand = SpoolWriter(tmp_path, PAIR)
    hand.say("b", 0, through_s, minute=-10)
    tells_all(hand, "a", 1)
    node = hand.window()["nodes"]["b"]
    assert (node["coverage"], node["loss"], node["loss_lower"], node["loss_upper"]) == (coverage, 1, 0, None)


@pytest.mark.parametrize(("through_s", "heard"), [(-10, True), (-10.000001, False)])
def test_an_instance_lives_ten_seconds_on(tmp_path: Path, through_s: float, heard: bool) -> None:  # noqa: FBT001
    """Without a bye its life ends 10 s after its last completion, that moment among it."""
    hand = SpoolWriter(tmp_path, PAIR)
    hand.say("a", 0, through_s, minute=-1)
    hand.say("b", 0, 90, minute=1, other={"epoch_us": (TEN_S + 60) * 1_000_000})
    assert hand.window()["verdict"] == ("UNKNOWN" if heard else "SILENT")


def test_a_message_that_one_instance_kept_and_another_sent_on_by_another_name_is_no_sure_loss(tmp_path: Path) -> None:
    """The instance p keeps message 1 for a later try, and q, which calls 1 and 2 101 and 102, sends both on.

    What b has as 1 is no orphan, as p has it too: it is what left q as 101 all the same.
    """
    hand = SpoolWriter(tmp_path, PAIR)
    tells_all(hand, "b", 1, 2, 5)
    hand.say("a", 0, 30, [*came(1), *passed(5)])
    hand.say("a", 1, HORIZON_S, minute=3)
    tells_all(hand, "a", 101, 102, other={"probe": "q"})
    hand.say("a", 1, HORIZON_S, minute=3, other={"probe": "q"})
    node = hand.window()["nodes"]["b"]
    assert (node["lost_in_transit"], node["orphans"], node["loss_lower"]) == (2, 1, 0)


@pytest.mark.parametrize(
    ("path", "at_q", "before", "behind", "lower"),
    [
        pytest.param("a", passed(101), (), (), 0, id="alone, q sends it on"),
        pytest.param("a", [Row(101, lag_in_us=None)], (), (), 0, id="alone, q has its departure"),
        pytest.param("a", [], (), (), 1, id="alone, without q"),
        pytest.param("a -> b", passed(101), (), (1,), 0, id="an origin, seen behind by the first name"),
        pytest.param("a -> b", passed(101), (), (101,), 0, id="an origin, seen behind by the second name"),
        pytest.param("a -> b", passed(2), (), (2,), 0, id="an origin, p shows no name"),
        pytest.param("z -> a", [*passed(102), Row(101, lag_in_us=None)], (1, 2), (), 0, id="q is a stranger"),
        pytest.param("z -> a", passed(2), (1, 2), (), 1, id="both know names of before"),
    ],
)
def test_what_one_instance_deferred_may_have_another_name_at_another_one(
    tmp_path: Path, path: str, at_q: list[Row], before: tuple[int, ...], behind: tuple[int, ...], lower: int
) -> None:
    """The instance p defers message 1 until 20 s after 10:00, and no more is heard of it by this name at a."""
    hand = SpoolWriter(tmp_path, {"path": path})
    hand.say("a", 0, 10, deferred(1), other=waiting(20))
    hand.say("a", 1, HORIZON_S, minute=3)
    if at_q:
        hand.say("a", 0, 30, at_q, other={"probe": "q"})
        hand.say("a", 1, HORIZON_S, minute=3, other={"probe": "q"})
    for node, message_ids in (("z", before), ("b", behind)):
        if message_ids:
            tells_all(hand, node, *message_ids)
    window = hand.window()
    assert (window["nodes"]["a"]["loss_lower"], window["nodes"]["a"]["deferred"]) == (lower, int(behind != (1,)))
    assert window["lost_lower"] == lower


def test_a_message_that_left_by_two_names_and_was_deferred_is_no_sure_loss_behind(tmp_path: Path) -> None:
    """The instance p defers message 1, q sends it on as 101, and p, which gets it again, as 1; 3 is 103 at q.

    What b has as 1 is no orphan and left its node, and so shows nothing of 101.
    """
    hand = SpoolWriter(tmp_path, PAIR)
    tells_all(hand, "b", 1, 3)
    hand.say("a", 0, 10, deferred(1), other=waiting(20))
    hand.say("a", 1, 30, passed(1))
    hand.say("a", 2, HORIZON_S, minute=3)
    hand.say("a", 0, 30, [*passed(103), Row(101, lag_in_us=None)], other={"probe": "q"})
    hand.say("a", 1, HORIZON_S, minute=3, other={"probe": "q"})
    window = hand.window()
    node = window["nodes"]["b"]
    assert (node["lost_in_transit"], node["orphans"], node["loss_lower"], window["lost_lower"]) == (2, 1, 0, 0)


@pytest.mark.parametrize(("until_s", "lower"), [(HORIZON_S, 1), (HORIZON_S - 0.000001, 0)])
def test_an_account_is_told_at_the_horizon(tmp_path: Path, until_s: float, lower: int) -> None:
    """Completed up to the horizon itself is enough, and nothing less is."""
    hand = SpoolWriter(tmp_path, PAIR)
    tells_all(hand, "a", 1, 2)
    tells_all(hand, "b", 1, until_s=until_s)
    assert hand.window()["nodes"]["b"]["loss_lower"] == lower


@pytest.mark.parametrize(("until_s", "lower"), [(400 + 150, 1), (400 + 149.999999, 0)])
def test_the_horizon_follows_the_latest_first_sighting(tmp_path: Path, until_s: float, lower: int) -> None:
    """A message first seen at 400 s moves it to 550 s; one that was seen before does not."""
    hand = SpoolWriter(tmp_path, PAIR)
    tells_all(hand, "a", 1)
    hand.say("a", 2, 400, passed(2))
    hand.say("a", 3, 560, passed(1), minute=0)
    tells_all(hand, "b", 1, until_s=until_s)
    assert hand.window()["nodes"]["b"]["loss_lower"] == lower


@pytest.mark.parametrize(("before_s", "behind_s", "told"), [
    (-20, -0.000001, True), (-20, 0, False), (HORIZON_S, 220, False), (HORIZON_S + 0.000001, 220, True),
    (30, 40, False),
])  # fmt: skip
def test_a_hole_touches_the_windows_of_its_span(tmp_path: Path, before_s: float, behind_s: float, told: bool) -> None:  # noqa: FBT001
    """Missing batches may belong to a window whose [start, horizon] meets the span between the batches around them."""
    hand = SpoolWriter(tmp_path, PAIR)
    hand.say("a", 0, before_s, minute=-1)
    hand.say("a", 2, behind_s, minute=0)
    hand.say("a", 3, 300, minute=5)
    assert hand.window()["nodes"]["a"]["coverage"] == float(told)


@pytest.mark.parametrize(("epoch_s", "told"), [(-120, False), (61, False), (211, True)])
def test_a_hole_at_the_beginning_starts_at_the_epoch(tmp_path: Path, epoch_s: int, told: bool) -> None:  # noqa: FBT001
    """Without a batch before it, a hole reaches back to the epoch."""
    hand = SpoolWriter(tmp_path, PAIR)
    hand.say("a", 1, 300, other={"epoch_us": (TEN_S + epoch_s) * 1_000_000})
    assert hand.window()["nodes"]["a"]["coverage"] == (None if told else 0.0)


def test_a_clock_that_is_ahead_completes_nothing(tmp_path: Path) -> None:
    """Epoch and completion count as no later than their arrival."""
    hand = SpoolWriter(tmp_path, PAIR)
    ahead = {"epoch_us": (TEN_S + 7200) * 1_000_000}
    tells_all(hand, "a", 1, 2)
    hand.say("b", 0, 30, passed(1), through_s=7300, other=ahead)
    assert hand.window()["nodes"]["b"]["coverage"] == 0.0
    hand.say("b", 1, HORIZON_S, through_s=7400, minute=3, other=ahead)
    assert hand.window()["nodes"]["b"]["coverage"] == 1.0


@pytest.mark.parametrize(("after_s", "late"), [(0, 0), (0.000001, 1)])
def test_too_late_is_counted_and_leaves_the_account_untold(tmp_path: Path, after_s: float, late: int) -> None:
    """A batch that is too late to amend its window makes the node heard, and shows no loss there."""
    hand = SpoolWriter(tmp_path, PAIR)
    tells_all(hand, "a", 1, 2)
    hand.say("b", 0, 30, passed(1))
    hand.say("b", 1, FINAL_S + 3600 + after_s, passed(2))
    hand.say("b", 2, FINAL_S + 7200, minute=60)
    window, accounts = hand.window(), hand.report()["accounts"]
    assert (accounts["too_late"], window["lost"], window["lost_lower"]) == (late, late, 0)
    assert window["nodes"]["b"]["coverage"] == 1.0 - late


@pytest.mark.parametrize(("minute", "at_s", "implausible"), [
    (6, 60, 0), (6, 59.999999, 1), (0, 60 + 86_400, 0), (0, 60 + 86_400.000001, 1),
])  # fmt: skip
def test_implausible_windows_touch_nothing(tmp_path: Path, minute: int, at_s: float, implausible: int) -> None:
    """More than 5 min ahead or older than `max_age`: counted, not listed, and its number is no hole."""
    hand = SpoolWriter(tmp_path, PAIR)
    hand.say("a", 0, 30)
    hand.say("a", 1, at_s, passed(1), minute=minute)
    hand.say("a", 2, 2 * 86_400, minute=2 * 1440)
    found = hand.report()
    starts = [one["window_start"] for one in found["streams"][0]["windows"]]
    assert found["accounts"]["implausible"] == implausible
    assert ("2026-01-01T10:06:00Z" in starts[:7]) or minute == 0
    assert sum(one["known"] for one in found["streams"][0]["windows"]) == (0 if implausible or minute == 0 else 1)


def test_drops_bound_from_above(tmp_path: Path) -> None:
    """Told but not complete: no lower bound, and the drops are added to the upper one."""
    hand = SpoolWriter(tmp_path, PAIR)
    tells_all(hand, "a", 1, 2)
    hand.say("b", 0, 30, passed(1))
    hand.say("b", 1, 300, minute=5, other=hand.drop(4))
    node = hand.window()["nodes"]["b"]
    assert (node["dropped"], node["coverage"], node["loss"], node["loss_lower"], node["loss_upper"]) == (
        4,
        0.0,
        1,
        0,
        5,
    )


def test_lost_after_a_branch_needs_the_books_of_all_its_nodes(tmp_path: Path) -> None:
    """A branch whose next node may hold stamps shows a loss that is not sure."""
    hand = SpoolWriter(tmp_path, {"path": "a -> b | c"})
    tells_all(hand, "a", 1, 2)
    tells_all(hand, "b", 1)
    hand.say("c", 0, 30)
    assert [hand.window()[key] for key in ("lost", "lost_lower", "lost_upper", "verdict")] == [1, 0, 1, "UNKNOWN"]
    hand.say("c", 1, HORIZON_S, minute=3)
    assert [hand.window()[key] for key in ("lost", "lost_lower", "lost_upper", "verdict")] == [1, 1, 1, "LOSSY"]


def test_with_several_places_all_terminals_must_have_told(tmp_path: Path) -> None:
    """Lost on one way is surely lost at its node, but end to end only once no other way can have delivered it."""
    hand = SpoolWriter(tmp_path, {"path": "a -> b & c"})
    tells_all(hand, "a", 1)
    tells_all(hand, "b")
    hand.say("c", 0, 30)
    window = hand.window()
    assert (window["nodes"]["b"]["loss_lower"], window["lost_lower"], window["verdict"]) == (1, 0, "LOSSY")
    hand.say("c", 1, HORIZON_S, minute=3)
    assert hand.window()["lost_lower"] == 1


def test_gaps_are_listed(tmp_path: Path) -> None:
    """Every minute from the first plausible batch to the last is there, whatever kind they are."""
    hand = SpoolWriter(tmp_path, PAIR)
    hand.say("a", 0, 30)
    hand.say("a", 1, 250, minute=4)
    windows = hand.report()["streams"][0]["windows"]
    assert [one["window_start"][14:16] for one in windows] == ["00", "01", "02", "03", "04"]
    assert windows[0]["loss_ratio"] is None
    assert windows[0]["lag_us"] is None
