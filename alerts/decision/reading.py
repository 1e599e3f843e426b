"""A reading: what one rule makes of one window at one place, bad or good. Where it says neither, there is none."""

from __future__ import annotations

from typing import NamedTuple


class Reading(NamedTuple):
    """Bad or good, and the figures of what is bad; ``node`` is empty for the stream as a whole.

    ``amended`` is what the window is now, in words, where it was amended and shows nothing bad any more: there are no
    figures then.
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


def good_reading(node: str) -> Reading:
    """Return that all is well at a place."""
    return Reading(node, is_bad=False)


def bad_reading(
    node: str, observed: float, threshold: float, parts: tuple[int, int] = (0, 0), note: str = ""
) -> Reading:
    """Return that a place is over its threshold, and how many of how many are affected."""
    affected, out_of = parts
    return Reading(node, is_bad=True, observed=observed, threshold=threshold, note=note)._replace(
        affected=affected, out_of=out_of
    )
