"""Reading of one rule for one window at one place: bad or good. If neither can be known, there is no reading."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """Reading of a rule, with figures if it is bad; ``node`` is empty for the stream as a whole.

    ``amended`` describes a window that was bad and is not bad after an amendment; there are no figures then.
    ``is_early`` says that the window was not final, and the figures are of what was overdue, or late so far.
    ``because`` is a likely cause in words, where the note says something else.
    """

    node: str
    is_bad: bool
    observed: float = 0.0
    threshold: float = 0.0
    affected: int = 0
    out_of: int = 0
    edge: str = ""
    lost_ids: tuple[str, ...] = ()
    note: str = ""
    amended: str = ""
    is_early: bool = False
    because: str = ""


def good_reading(node: str) -> Reading:
    """Build the reading of a place that is good."""
    return Reading(node, is_bad=False)


def bad_reading(
    node: str, observed: float, threshold: float, parts: tuple[int, int] = (0, 0), note: str = ""
) -> Reading:
    """Build the reading of a place that is over its threshold; ``parts`` are those affected, and all."""
    affected, out_of = parts
    return Reading(node, is_bad=True, observed=observed, threshold=threshold, note=note)._replace(
        affected=affected, out_of=out_of
    )
