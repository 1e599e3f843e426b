"""Tests of a loss as people read it: bounds first, and nothing that is unknown dressed as loss."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopwatch.monitor.texts import loss_bounds
from hopwatch.monitor.texts.loss_bounds import LossPart

COUNTS = st.integers(0, 10**6)


@pytest.mark.parametrize(
    ("missing", "lower", "upper", "said", "share"),
    [
        (50, 50, 50, "50", "50%"),
        (50, 0, 50, "0 to 50", "0% to 50%"),
        (50, 0, None, "0 to ?", "0% to ?"),
        (50, 20, 60, "20 to 60", "20% to 60%"),
        (50, 20, 5_000, "20 to 5,000", "20% to 100%"),
        (1_500, 1_200, None, "1,200 to ?", "1200% to ?"),
        (0, 0, 0, "0", "0%"),
        (0, 0, None, "?", "?"),
        (0, 0, 7, "?", "?"),
    ],
)
def test_bounds_come_first(missing: int, lower: int, upper: int | None, said: str, share: str) -> None:
    """One number where it is known; of 100 messages, as a number and as a part of all."""
    assert loss_bounds.format_bounds(missing, lower, upper) == said
    assert loss_bounds.format_ratio(missing / 100, missing, lower, upper, lambda part: f"{part or 0:.0%}") == share
    assert loss_bounds.is_unknown(lower, upper) is (said.startswith("0 to") or said == "?")


def test_of_nothing_there_is_no_part() -> None:
    """The part of nothing is no number if it is known that nothing was lost, and unknown otherwise."""
    assert loss_bounds.format_ratio(None, 0, 0, 0, str) == "None"
    assert loss_bounds.format_ratio(None, 0, 0, None, str) == loss_bounds.UNKNOWN_NUMBER


@given(COUNTS, COUNTS, COUNTS, st.none() | COUNTS)
def test_the_sure_parts_of_a_loss_are_never_more_than_the_loss(
    part: int, rest: int, surely: int, more: int | None
) -> None:
    """The sure parts of a loss add up to no more than the loss, and to all of it where all is sure."""
    loss = part + rest
    lower, upper = min(surely, loss), None if more is None else loss + more
    (least, most), (least_rest, _) = (loss_bounds.bound_part(one, loss, lower, upper) for one in (part, rest))
    assert least + least_rest <= lower <= loss
    assert least <= part
    assert most is None if more is None else most == part + more
    assert (lower < loss) or (least, least_rest) == (part, rest)


@pytest.mark.parametrize(
    ("loss", "lower", "told"),
    [
        (50, 0, "not seen at writer; it is not known whether it was lost"),
        (50, 12, "not seen at writer; 12 of 50 like it are surely lost"),
        (50, 50, "lost at writer"),
    ],
)
def test_a_message_is_called_lost_only_where_the_lower_bound_covers_it(loss: int, lower: int, told: str) -> None:
    """One of many of which some are surely lost may be any of them."""
    assert loss_bounds.describe_missing("writer", loss, lower, LossPart.ON_THE_WAY) == told


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (LossPart.ON_THE_WAY, ("not seen at b", "lost at b")),
        (LossPart.INSIDE, ("not seen leaving b", "lost inside b: it arrived and was not seen leaving")),
        (LossPart.AFTER, ("not seen behind b", "lost after b: it left and was not seen behind it")),
        (LossPart.SOMEWHERE, ("missing at b", "lost at b")),
    ],
)
def test_a_message_that_arrived_is_not_said_to_be_not_seen_there(part: LossPart, told: tuple[str, str]) -> None:
    """A message that a node has stamped is described as seen there, and missing behind it."""
    unseen, lost = told
    assert loss_bounds.describe_missing("b", 9, 9, part) == lost
    assert loss_bounds.describe_missing("b", 9, 0, part) == f"{unseen}; it is not known whether it was lost"
    assert loss_bounds.describe_missing("b", 9, 4, part) == f"{unseen}; 4 of 9 like it are surely lost"


@given(COUNTS, COUNTS, COUNTS)
def test_counts_name_a_part_only_where_all_is_in_it(in_transit: int, inside: int, after: int) -> None:
    """Of a loss in several parts nobody knows in which one message was."""
    part = loss_bounds.find_loss_part(in_transit, inside, after)
    counts = {LossPart.ON_THE_WAY: in_transit, LossPart.INSIDE: inside, LossPart.AFTER: after}
    assert (part is LossPart.SOMEWHERE) == (sum(count > 0 for count in counts.values()) != 1)
    assert part is LossPart.SOMEWHERE or counts[part] == sum(counts.values())
