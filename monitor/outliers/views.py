"""The 25 ways in which a value may be strange, by name, in the order in which they are computed."""

from __future__ import annotations

from typing import Final, NamedTuple


class View(NamedTuple):
    """One way to look at the newest value.

    ``name`` is what programs read, ``words`` what people do; views of one ``family`` have one voice in the score.
    """

    name: str
    family: str
    words: str


VIEWS: Final = (
    View("level_up", "level", "high"),
    View("level_down", "level", "low"),
    View("jump_up", "jump", "jumped up from the last three"),
    View("jump_down", "jump", "jumped down from the last three"),
    View("fast_up", "fast mean", "above the mean of the last few"),
    View("fast_down", "fast mean", "below the mean of the last few"),
    View("slow_up", "slow mean", "above the mean of the last dozens"),
    View("slow_down", "slow mean", "below the mean of the last dozens"),
    View("day_up", "day", "high for this time of the day"),
    View("day_down", "day", "low for this time of the day"),
    View("day_drift_up", "day", "rose against the usual day"),
    View("day_drift_down", "day", "fell against the usual day"),
    View("week_drift_up", "week", "rose against the usual week"),
    View("week_drift_down", "week", "fell against the usual week"),
    View("shift_32_up", "shift over 32", "the mean of 32 rose"),
    View("shift_32_down", "shift over 32", "the mean of 32 fell"),
    View("shift_96_up", "shift over 96", "the mean of 96 rose"),
    View("shift_96_down", "shift over 96", "the mean of 96 fell"),
    View("restless_32", "spread", "32 values are widely spread"),
    View("still_32", "stillness", "32 values hardly move"),
    View("still_96", "stillness", "96 values hardly move"),
    View("above_32", "breakout", "above all of the last 32"),
    View("below_32", "breakout", "below all of the last 32"),
    View("rise_16", "rise over 16", "rose within 16 values"),
    View("fall_16", "rise over 16", "fell within 16 values"),
)
